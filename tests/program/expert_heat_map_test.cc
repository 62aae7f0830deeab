#include "program/expert_heat_map.h"

#include <gtest/gtest.h>

namespace switchyard {
namespace {

// Layer 3, two heads of two experts: 1 and 3 tokens, and a head without work.
v1::GetExpertStatsResponse OneRouter() {
  v1::GetExpertStatsResponse stats;
  v1::RouterStats& router = *stats.add_routers();
  router.set_layer(3);
  router.set_kind("attn_v");
  router.set_heads(2);
  router.set_experts(2);
  for (int i = 0; i < 4; ++i) {
    router.add_stats()->set_tokens(0);
  }
  router.mutable_stats(0)->set_utilization(0);
  router.mutable_stats(1)->set_tokens(4);
  router.mutable_stats(1)->set_utilization(2);
  router.mutable_figures()->set_effective_experts(1);
  return stats;
}

TEST(ExpertHeatMap, TellsDeadExpertsFromThoseOfAHeadWithoutWork) {
  EXPECT_EQ(
      ExpertHeatMap(OneRouter(), HeatMapStyle::kPlain),
      "attn_v: tokens of each expert over its fair share; then effective experts\n"
      "                   0     1\n"
      "  layer 3.0     dead  2.00  1.00 of 2\n"
      "  layer 3.1        -     -\n"
      "\n"
  );
}

TEST(ExpertHeatMap, AddsMarginAndDriftWhereTheyAreKnown) {
  v1::GetExpertStatsResponse stats = OneRouter();
  stats.mutable_routers(0)->mutable_figures()->set_margin(0.257);
  stats.mutable_routers(0)->mutable_figures()->set_drift(0.125);

  const std::string map = ExpertHeatMap(stats, HeatMapStyle::kPlain);

  EXPECT_NE(map.find("  1.00 of 2, margin 0.26, drift 0.12\n"), std::string::npos) << map;
}

TEST(ExpertHeatMap, ColorsWhatIsKnown) {
  const std::string map = ExpertHeatMap(OneRouter(), HeatMapStyle::kColor);

  EXPECT_NE(map.find("\033[48;5;18;38;5;255m  dead\033[0m"), std::string::npos);
  EXPECT_NE(map.find("\033[48;5;208;38;5;16m  2.00\033[0m"), std::string::npos);
  EXPECT_NE(map.find("     -     -\n"), std::string::npos);
}

}  // namespace
}  // namespace switchyard
