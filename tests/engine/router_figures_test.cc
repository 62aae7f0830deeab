#include "engine/router_figures.h"

#include <gtest/gtest.h>

#include <array>

namespace switchyard {
namespace {

TEST(RouterFigures, OfEvenLoadsAreThoseOfAFairRouter) {
  constexpr std::array<int64_t, 3> kLoads = {5, 5, 5};

  const auto figures = FiguresOf(kLoads);

  ASSERT_TRUE(figures.has_value());
  EXPECT_DOUBLE_EQ(figures->load_variation, 0);
  EXPECT_NEAR(figures->effective_experts, 3, 1e-12);
  EXPECT_DOUBLE_EQ(figures->dead_share, 0);
  EXPECT_DOUBLE_EQ(figures->max_over_mean, 1);
}

// Mean 2; deviations -1 and 1: variation 1 / 2. Entropy -(0.25 ln 0.25 + 0.75 ln 0.75) = 0.5623351.
TEST(RouterFigures, OfUnevenLoadsFollowTheirDefinitions) {
  constexpr std::array<int64_t, 2> kLoads = {1, 3};

  const auto figures = FiguresOf(kLoads);

  ASSERT_TRUE(figures.has_value());
  EXPECT_DOUBLE_EQ(figures->load_variation, 0.5);
  EXPECT_NEAR(figures->effective_experts, 1.7547654, 1e-7);
  EXPECT_DOUBLE_EQ(figures->dead_share, 0);
  EXPECT_DOUBLE_EQ(figures->max_over_mean, 1.5);
}

// Mean 1; deviations 3, -1, -1, -1: variation sqrt(12 / 4).
TEST(RouterFigures, OfACollapsedRouterShowOneExpertAndTheRestDead) {
  constexpr std::array<int64_t, 4> kLoads = {0, 4, 0, 0};

  const auto figures = FiguresOf(kLoads);

  ASSERT_TRUE(figures.has_value());
  EXPECT_NEAR(figures->load_variation, 1.7320508, 1e-7);
  EXPECT_DOUBLE_EQ(figures->effective_experts, 1);
  EXPECT_DOUBLE_EQ(figures->dead_share, 0.75);
  EXPECT_DOUBLE_EQ(figures->max_over_mean, 4);
}

TEST(RouterFigures, AreAbsentWithoutWork) {
  constexpr std::array<int64_t, 2> kLoads = {0, 0};

  EXPECT_FALSE(FiguresOf(kLoads).has_value());
  EXPECT_FALSE(Combined({std::nullopt, std::nullopt}).has_value());
}

TEST(RouterFigures, OfHeadsAreCombinedOverThoseThatWork) {
  constexpr std::array<int64_t, 2> kOneAndThree = {1, 3};
  constexpr std::array<int64_t, 2> kCollapsed = {4, 0};

  const auto figures = Combined({FiguresOf(kOneAndThree), std::nullopt, FiguresOf(kCollapsed)});

  ASSERT_TRUE(figures.has_value());
  EXPECT_DOUBLE_EQ(figures->load_variation, 0.75);  // of 0.5 and 1
  EXPECT_NEAR(figures->effective_experts, 1.3773827, 1e-7);
  EXPECT_DOUBLE_EQ(figures->dead_share, 0.5);  // 0, 2 and 1 of 6
  EXPECT_DOUBLE_EQ(figures->max_over_mean, 2);
}

// Of the heads that have the figure.
TEST(RouterFigures, OfHeadsHaveTheMeanMarginAndDrift) {
  constexpr std::array<int64_t, 2> kLoads = {1, 3};
  std::optional<RouterFigures> with_both = FiguresOf(kLoads);
  with_both->margin = 0.5;
  with_both->drift = 0.25;
  std::optional<RouterFigures> with_margin = FiguresOf(kLoads);
  with_margin->margin = 1.5;

  const auto figures = Combined({with_both, std::nullopt, with_margin});

  ASSERT_TRUE(figures.has_value());
  EXPECT_DOUBLE_EQ(figures->margin.value_or(-1), 1);
  EXPECT_DOUBLE_EQ(figures->drift.value_or(-1), 0.25);
  EXPECT_FALSE(Combined({FiguresOf(kLoads)})->margin.has_value());
}

TEST(Utilization, IsOneForAFairShare) {
  EXPECT_DOUBLE_EQ(Utilization(6, 24, 4), 1);
  EXPECT_DOUBLE_EQ(Utilization(9, 24, 4), 1.5);
  EXPECT_DOUBLE_EQ(Utilization(0, 24, 4), 0);
}

}  // namespace
}  // namespace switchyard
