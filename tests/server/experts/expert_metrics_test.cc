#include "server/experts/expert_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <sstream>
#include <string>

#include "tests/server/running_server.h"
#include "tests/server/two_routers.h"

namespace switchyard {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class ExpertMetrics : public ::testing::Test {
 protected:
  // The series of a scrape at this level.
  std::string Scrape(ExpertMetricsLevel level) {
    ServingOptions options;
    options.expert_metrics.level = level;
    ServingState state(options);
    state.experts().SetBaseline(baseline_);
    const std::unique_ptr<LoadedModel> model = MakeFakeModel({'x'}, {});
    static_cast<FakeEngine&>(*model->engine).SetStatistics(TwoRouters());
    MetricFamilies families(MetricLabels{{"model", "fake"}});
    EXPECT_TRUE(AddExpertMetrics(*model, state, families).ok());
    return families.Text();
  }

  std::shared_ptr<const ExpertBaseline> baseline_;

  static int64_t CountSeries(const std::string& text) {
    std::istringstream lines(text);
    std::string line;
    int64_t series = 0;
    while (std::getline(lines, line)) {
      series += !line.empty() && line[0] != '#' ? 1 : 0;
    }
    return series;
  }
};

// 2 routers x (3 phases + 5 figures x 3 windows), and 6 experts x 2 phases x 2 sums.
TEST_F(ExpertMetrics, HaveAsManySeriesAsTheBudgetCounts) {
  EXPECT_EQ(CountExpertSeries(TwoRoutersInfo(), ExpertMetricsLevel::kOff), 0);
  EXPECT_EQ(CountExpertSeries(TwoRoutersInfo(), ExpertMetricsLevel::kSummary), 36);
  EXPECT_EQ(CountExpertSeries(TwoRoutersInfo(), ExpertMetricsLevel::kFull), 60);
  EXPECT_EQ(CountSeries(Scrape(ExpertMetricsLevel::kOff)), 0);
  EXPECT_EQ(CountSeries(Scrape(ExpertMetricsLevel::kSummary)), 36);
  EXPECT_EQ(CountSeries(Scrape(ExpertMetricsLevel::kFull)), 60);
}

// One figure more: 2 routers x 3 windows.
TEST_F(ExpertMetrics, TellDriftWhenThereIsABaseline) {
  baseline_ = std::make_shared<const ExpertBaseline>(ExpertBaseline{
      .model = "fake",
      .routers = {
          {.layer = 0, .kind = "attn", .experts = 2, .top_k = 1, .loads = {1, 0}},
          {.layer = 1,
           .kind = "attn_v",
           .heads = 2,
           .experts = 2,
           .top_k = 1,
           .loads = {0, 1, 1, 1}}}});
  v1::GetModelInfoResponse info = TwoRoutersInfo();
  info.set_has_expert_baseline(true);

  const std::string text = Scrape(ExpertMetricsLevel::kSummary);

  EXPECT_EQ(CountSeries(text), 42);
  EXPECT_EQ(CountExpertSeries(info, ExpertMetricsLevel::kSummary), 42);
  EXPECT_THAT(
      text,
      HasSubstr("switchyard_expert_drift{model=\"fake\",layer=\"0\",kind=\"attn\","
                "window=\"10m\"} 0.4413")
  );
}

TEST_F(ExpertMetrics, HaveNoMarginWhereNothingIsLeftOut) {
  v1::GetModelInfoResponse info = TwoRoutersInfo();
  info.mutable_routers(0)->set_top_k(2);

  EXPECT_EQ(CountExpertSeries(info, ExpertMetricsLevel::kSummary), 33);
}

TEST_F(ExpertMetrics, TellTheCountsOfEachExpertAndPhase) {
  const std::string text = Scrape(ExpertMetricsLevel::kFull);

  EXPECT_THAT(
      text,
      HasSubstr("switchyard_expert_tokens_total{model=\"fake\",layer=\"1\",kind=\"attn_v\","
                "head=\"1\",expert=\"0\",phase=\"prefill\"} 2\n")
  );
  EXPECT_THAT(
      text,
      HasSubstr("switchyard_expert_gate_weight_total{model=\"fake\",layer=\"0\",kind=\"attn\","
                "head=\"0\",expert=\"1\",phase=\"decode\"} 10\n")
  );
  EXPECT_THAT(
      text,
      HasSubstr("switchyard_router_tokens_total{model=\"fake\",layer=\"1\",kind=\"attn_v\","
                "phase=\"decode\"} 30\n")
  );
}

// Layer 0 had 13 and 24 tokens: the greatest over the mean is 24 / 18.5. Of layer 1, head 0 had 37
// and 0: one of its four experts is dead.
TEST_F(ExpertMetrics, TellTheFiguresOfEachRouter) {
  const std::string text = Scrape(ExpertMetricsLevel::kSummary);

  EXPECT_THAT(
      text,
      HasSubstr("switchyard_expert_max_over_mean{model=\"fake\",layer=\"0\",kind=\"attn\","
                "window=\"life\"} 1.297297297297297")
  );
  EXPECT_THAT(
      text,
      HasSubstr("switchyard_expert_dead_ratio{model=\"fake\",layer=\"1\",kind=\"attn_v\","
                "window=\"life\"} 0.25\n")
  );
  EXPECT_THAT(
      text,
      HasSubstr("switchyard_router_margin{model=\"fake\",layer=\"1\",kind=\"attn_v\","
                "window=\"1m\"} 0.75\n")
  );
  EXPECT_THAT(text, Not(HasSubstr("expert_tokens_total")));
}

TEST_F(ExpertMetrics, OverTheBudgetAreRefusedWithBothNumbers) {
  const v1::GetModelInfoResponse info = TwoRoutersInfo();

  const Status refused =
      CheckExpertSeries(info, {.level = ExpertMetricsLevel::kFull, .max_series = 59});

  EXPECT_EQ(refused.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(MessageOf(refused), HasSubstr("make 60 Prometheus series"));
  EXPECT_THAT(MessageOf(refused), HasSubstr("--max-expert-series 59"));
  EXPECT_TRUE(CheckExpertSeries(info, {.level = ExpertMetricsLevel::kFull, .max_series = 60}).ok());
  EXPECT_TRUE(CheckExpertSeries(info, {.level = ExpertMetricsLevel::kFull, .max_series = 0}).ok());
}

}  // namespace
}  // namespace switchyard
