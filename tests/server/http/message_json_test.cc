#include "server/http/message_json.h"

#include <gtest/gtest.h>

#include "switchyard/v1/experts.pb.h"
#include "switchyard/v1/inference.pb.h"

namespace switchyard {
namespace {

TEST(ToJson, WritesLongIntegersAsNumbersAndLeavesOutWhatIsAbsent) {
  v1::GetExpertStatsResponse response;
  response.set_model("m");
  response.set_window(v1::WINDOW_LIFE);
  response.set_window_seconds(1.5);
  v1::RouterStats& router = *response.add_routers();
  router.set_kind("attn");
  router.add_stats()->set_tokens(int64_t{1} << 53);
  router.add_stats()->set_utilization(0);

  EXPECT_EQ(
      ToJson(response).dump(),
      R"({"model":"m","routers":[{"layer":0,"kind":"attn","heads":0,"experts":0,"top_k":0,)"
      R"("tokens_routed":0,"stats":[{"head":0,"expert":0,"tokens":9007199254740992,)"
      R"("gate_weight_sum":0.0},{"head":0,"expert":0,"tokens":0,"gate_weight_sum":0.0,)"
      R"("utilization":0.0}],"head_figures":[]}],"uptime_seconds":0.0,"window":"WINDOW_LIFE",)"
      R"("window_seconds":1.5})"
  );
}

TEST(ToJson, WritesAMapAsAnObject) {
  v1::GetLoadResponse load;
  (*load.mutable_refusals_total())["streams"] = 3;

  EXPECT_EQ(ToJson(load)["refusals_total"].dump(), R"({"streams":3})");
}

}  // namespace
}  // namespace switchyard
