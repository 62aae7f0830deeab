#include "engine/expert_statistics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "tests/engine/driven_engine.h"
#include "tests/support/test_devices.h"

namespace switchyard {
namespace {

class ExpertCounts : public ::testing::TestWithParam<TinyFamily> {};

int64_t TokensOf(const RouterStatistics& router, Phase phase) {
  const int64_t experts = router.heads * router.experts;
  const auto first = router.tokens.begin() + static_cast<int64_t>(phase) * experts;
  return std::accumulate(first, first + experts, int64_t{0});
}

TEST_P(ExpertCounts, AreTokensTimesTopKOfEachPhaseOnEveryBackend) {
  for (const std::string& backend : BackendNames()) {
    DrivenEngine engine({.family = GetParam(), .device = DeviceOf(backend)});
    ASSERT_TRUE(engine.core().WarmUp().ok());
    engine.Add(GreedyRequest({3, 1, 4, 1, 5}, 7));
    engine.Add(GreedyRequest({9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2, 3, 8, 4, 6, 2, 6}, 3));

    engine.RunAll();
    const ExpertStatistics statistics = engine.core().ReadExpertStatistics();

    ASSERT_FALSE(statistics.routers.empty());
    for (const RouterStatistics& router : statistics.routers) {
      const int64_t choices = router.heads * router.top_k;
      // 23 prompt tokens; the last token of each completion is never fed back, so 6 + 2 decodes.
      EXPECT_EQ(TokensOf(router, Phase::kPrefill), 23 * choices) << backend;
      EXPECT_EQ(TokensOf(router, Phase::kDecode), 8 * choices) << backend;
      EXPECT_EQ(TokensOf(router, Phase::kRecompute), 0) << backend;
      EXPECT_EQ(TokensOf(router, Phase::kWarmUp), 2 * choices) << backend;
      EXPECT_EQ(router.tokens.size(), router.gate_sum.size());
      EXPECT_EQ(router.tokens.size(), router.margin_sum.size());
    }
  }
}

// Three requests of 7 blocks each in a cache of 10: some tokens are computed twice.
TEST_P(ExpertCounts, KeepTokensComputedAgainApartOnEveryBackend) {
  for (const std::string& backend : BackendNames()) {
    DrivenEngine engine(
        {.family = GetParam(),
         .limits = {.max_step_tokens = 16, .max_running = 4, .block_tokens = 4, .growth_tokens = 0},
         .blocks = 10,
         .device = DeviceOf(backend)}
    );
    ASSERT_TRUE(engine.core().WarmUp().ok());
    for (int32_t first = 0; first < 3; ++first) {
      std::vector<int32_t> prompt = Prompt(9);
      prompt[0] = first;
      engine.Add(GreedyRequest(std::move(prompt), 18));
    }

    engine.RunAll();
    const int64_t computed_again = engine.core().step_statistics().Tokens(Phase::kRecompute);

    EXPECT_GT(computed_again, 0);
    for (const RouterStatistics& router : engine.core().ReadExpertStatistics().routers) {
      const int64_t choices = router.heads * router.top_k;
      EXPECT_EQ(TokensOf(router, Phase::kPrefill), 3 * 9 * choices) << backend;
      EXPECT_EQ(TokensOf(router, Phase::kDecode), 3 * 17 * choices) << backend;
      EXPECT_EQ(TokensOf(router, Phase::kRecompute), computed_again * choices) << backend;
      EXPECT_EQ(TokensOf(router, Phase::kWarmUp), 2 * choices) << backend;
    }
  }
}

TEST_P(ExpertCounts, AreZeroBeforeAnythingRan) {
  DrivenEngine engine({.family = GetParam()});
  engine.now += std::chrono::seconds(3);

  const ExpertStatistics statistics = engine.core().ReadExpertStatistics();

  EXPECT_DOUBLE_EQ(statistics.uptime_seconds, 3);
  for (const RouterStatistics& router : statistics.routers) {
    EXPECT_EQ(std::accumulate(router.tokens.begin(), router.tokens.end(), int64_t{0}), 0);
  }
}

TEST_P(ExpertCounts, AreEqualOnEveryBackendForEqualTokens) {
  const auto counts_on = [](const std::string& backend) {
    DrivenEngine engine({.family = GetParam(), .device = DeviceOf(backend)});
    // One token each: all that is routed is the prompt.
    engine.Add(GreedyRequest(Prompt(37), 1));
    engine.Add(GreedyRequest({9, 2, 6, 5, 3}, 1));
    engine.RunAll();
    std::vector<std::vector<int64_t>> counts;
    for (const RouterStatistics& router : engine.core().ReadExpertStatistics().routers) {
      counts.push_back(router.tokens);
    }
    return counts;
  };
  const auto expected = counts_on("reference");

  for (const std::string& backend : FastBackendNames()) {
    EXPECT_EQ(counts_on(backend), expected) << backend;
  }
}

// Scores differ by rounding between backends, and a margin is a difference of scores.
TEST_P(ExpertCounts, HaveNearlyEqualMarginsOnEveryBackend) {
  const auto margins_on = [](const std::string& device) {
    DrivenEngine engine({.family = GetParam(), .device = device});
    engine.Add(GreedyRequest(Prompt(37), 1));
    engine.RunAll();
    std::vector<double> margins;
    for (const RouterStatistics& router : engine.core().ReadExpertStatistics().routers) {
      margins.push_back(
          std::accumulate(router.margin_sum.begin(), router.margin_sum.end(), 0.0) / 37
      );
    }
    return margins;
  };
  const std::vector<double> expected = margins_on("reference");

  for (const double margin : expected) {
    EXPECT_GT(margin, 0);
  }
  for (const std::string& backend : FastBackendNames()) {
    EXPECT_THAT(
        margins_on(DeviceOf(backend)), ::testing::Pointwise(::testing::DoubleNear(1e-5), expected)
    ) << backend;
  }
}

TEST(ExpertStatistics, SumsGatesThatAddUpToOneForEachToken) {
  DrivenEngine engine({.family = TinyFamily::kJetMoe});
  engine.Add(GreedyRequest({3, 1, 4, 1, 5}, 1));

  engine.RunAll();
  const ExpertStatistics statistics = engine.core().ReadExpertStatistics();

  ASSERT_EQ(statistics.routers.size(), 4);  // attention and feed-forward of two layers
  for (const RouterStatistics& router : statistics.routers) {
    EXPECT_NEAR(std::accumulate(router.gate_sum.begin(), router.gate_sum.end(), 0.0), 5, 1e-5);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Families, ExpertCounts, ::testing::Values(TinyFamily::kJetMoe, TinyFamily::kSwitchHead)
);

}  // namespace
}  // namespace switchyard
