#include "engine/expert_drift.h"

#include <gtest/gtest.h>

#include <array>

namespace switchyard {
namespace {

// p = (1/2, 1/2), q = (1, 0), m = (3/4, 1/4): KL(p || m) = (log2(2/3) + log2(2)) / 2 = 0.2075187,
// KL(q || m) = log2(4/3) = 0.4150375; half of their sum.
TEST(JensenShannonDivergence, FollowsItsDefinition) {
  constexpr std::array<int64_t, 2> kEven = {7, 7};
  constexpr std::array<int64_t, 2> kCollapsed = {3, 0};

  const auto divergence = JensenShannonDivergence(kEven, kCollapsed);

  ASSERT_TRUE(divergence.has_value());
  EXPECT_NEAR(*divergence, 0.3112781, 1e-7);
  EXPECT_EQ(JensenShannonDivergence(kCollapsed, kEven), divergence);
}

TEST(JensenShannonDivergence, IsOneForExpertsThatHaveNothingInCommon) {
  constexpr std::array<int64_t, 4> kFirst = {5, 1, 0, 0};
  constexpr std::array<int64_t, 4> kLast = {0, 0, 1, 900};

  EXPECT_DOUBLE_EQ(JensenShannonDivergence(kFirst, kLast).value_or(-1), 1);
}

TEST(JensenShannonDivergence, IsZeroForEqualSharesOfAnyTotal) {
  constexpr std::array<int64_t, 3> kFew = {1, 0, 2};
  constexpr std::array<int64_t, 3> kMany = {1'000'000'000'000, 0, 2'000'000'000'000};

  EXPECT_NEAR(JensenShannonDivergence(kFew, kMany).value_or(-1), 0, 1e-12);
}

TEST(JensenShannonDivergence, IsAbsentWithoutWorkOnEitherSide) {
  constexpr std::array<int64_t, 2> kIdle = {0, 0};
  constexpr std::array<int64_t, 2> kBusy = {1, 2};

  EXPECT_FALSE(JensenShannonDivergence(kIdle, kBusy).has_value());
  EXPECT_FALSE(JensenShannonDivergence(kBusy, kIdle).has_value());
}

}  // namespace
}  // namespace switchyard
