#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "tests/kernels/op_test.h"
#include "tests/kernels/test_routing.h"

namespace switchyard {
namespace {

// A gate of 1 in units of kGateSumUnit.
constexpr int64_t kOne = 1 << 24;

using testing::ElementsAre;
using testing::ElementsAreArray;

class GroupByExpertTest : public OpTest {
 protected:
  RouterCounters Counters(int64_t experts) {
    return {
        .tokens = memory_.Zeros(DType::kI64, {kPhases, experts}),
        .gate_sum = memory_.Zeros(DType::kI64, {kPhases, experts}),
        .margin_sum = {},
    };
  }
};
INSTANTIATE_TEST_SUITE_P(
    Backends, GroupByExpertTest, testing::ValuesIn(BackendNames()), BackendTestName
);

TEST_P(GroupByExpertTest, OrdersAssignmentsByExpertThenNumber) {
  const TestRouting routing = {
      .tokens = 3,
      .top_k = 2,
      .experts = 4,
      .ids = {3, 0, 0, 2, 3, 0},
      .gates = {1, 1, 1, 1, 1, 1}};

  const GroupedRouting grouped = Grouped(*ops_, memory_, routing);

  EXPECT_THAT(memory_.ReadInts(grouped.order), ElementsAre(1, 2, 5, 3, 0, 4));
  EXPECT_THAT(memory_.ReadInts(grouped.offsets), ElementsAre(0, 3, 3, 4, 6));
}

TEST_P(GroupByExpertTest, KeepsTheExpertsOfEachGroupApart) {
  const TestRouting routing = {
      .tokens = 2, .groups = 2, .experts = 2, .ids = {1, 0, 1, 1}, .gates = {1, 1, 1, 1}};

  const GroupedRouting grouped = Grouped(*ops_, memory_, routing);

  EXPECT_THAT(memory_.ReadInts(grouped.order), ElementsAre(0, 2, 1, 3));
  EXPECT_THAT(memory_.ReadInts(grouped.offsets), ElementsAre(0, 0, 2, 3, 4));
}

TEST_P(GroupByExpertTest, LeavesUnusedSlotsOutAndFillsTheTail) {
  const TestRouting routing = {
      .tokens = 2, .top_k = 2, .experts = 2, .ids = {-1, 1, 0, -1}, .gates = {0, 1, 1, 0}};

  const GroupedRouting grouped = Grouped(*ops_, memory_, routing);

  EXPECT_THAT(memory_.ReadInts(grouped.order), ElementsAre(2, 1, -1, -1));
  EXPECT_THAT(memory_.ReadInts(grouped.offsets), ElementsAre(0, 1, 2));
}

TEST_P(GroupByExpertTest, GivesEmptyRangesForNoTokens) {
  const TestRouting routing = {.tokens = 0, .top_k = 2, .experts = 3};

  const GroupedRouting grouped = Grouped(*ops_, memory_, routing);

  EXPECT_THAT(memory_.ReadInts(grouped.offsets), ElementsAre(0, 0, 0, 0));
}

TEST_P(GroupByExpertTest, CountsTokensAndGatesUnderTheirPhase) {
  const TestRouting routing = {
      .tokens = 4,
      .top_k = 2,
      .experts = 2,
      .ids = {0, 1, 1, 0, 1, -1, 0, 1},
      .gates = {0.5F, 0.25F, 1, 0.125F, 0.75F, 0, 1, 1},
  };
  const GroupedRouting grouped = Grouped(*ops_, memory_, routing);
  const RouterCounters counters = Counters(2);

  ops_->GroupByExpert(memory_.Ints({4}, {0, 1, 1, 3}), counters, grouped);

  EXPECT_THAT(memory_.ReadLongs(counters.tokens), ElementsAre(1, 1, 1, 2, 0, 0, 1, 1));
  EXPECT_THAT(
      memory_.ReadLongs(counters.gate_sum),
      ElementsAre(kOne / 2, kOne / 4, kOne / 8, 7 * kOne / 4, 0, 0, kOne, kOne)
  );
}

TEST_P(GroupByExpertTest, AddsToWhatTheCountersHold) {
  const TestRouting routing = {.tokens = 1, .experts = 1, .ids = {0}, .gates = {0.5F}};
  const GroupedRouting grouped = Grouped(*ops_, memory_, routing);
  const RouterCounters counters = Counters(1);
  const TensorView phases = memory_.Ints({1}, {static_cast<int32_t>(Phase::kRecompute)});

  ops_->GroupByExpert(phases, counters, grouped);
  ops_->GroupByExpert(phases, counters, grouped);

  EXPECT_THAT(memory_.ReadLongs(counters.tokens), ElementsAre(0, 0, 2, 0));
  EXPECT_THAT(memory_.ReadLongs(counters.gate_sum), ElementsAre(0, 0, 1 << 24, 0));
}

TEST_P(GroupByExpertTest, CountsATokenWithANanGateButNotTheGate) {
  const TestRouting routing = {.tokens = 1, .experts = 1, .ids = {0}, .gates = {kNan}};
  const GroupedRouting grouped = Grouped(*ops_, memory_, routing);
  const RouterCounters counters = Counters(1);

  ops_->GroupByExpert(memory_.Ints({1}, {0}), counters, grouped);

  EXPECT_THAT(memory_.ReadLongs(counters.tokens), ElementsAre(1, 0, 0, 0));
  EXPECT_THAT(memory_.ReadLongs(counters.gate_sum), ElementsAre(0, 0, 0, 0));
}

// Rows are (token, group): expert 1 is first in three of them, expert 0 of group 1 in one.
TEST_P(GroupByExpertTest, SumsMarginsUnderThePhaseAndTheFirstChoice) {
  const TestRouting routing = {
      .tokens = 2,
      .groups = 2,
      .top_k = 2,
      .experts = 3,
      .ids = {1, 0, 1, 2, 1, 2, 0, 1},
      .gates = {1, 1, 1, 1, 1, 1, 1, 1}};
  GroupedRouting grouped = Grouped(*ops_, memory_, routing);
  grouped.routing.margins = memory_.Floats({2, 2}, {0.5F, 2, 4, 0.25F});
  RouterCounters counters = Counters(6);
  counters.margin_sum = memory_.Zeros(DType::kI64, {kPhases, 6});

  ops_->GroupByExpert(memory_.Ints({2}, {0, 1}), counters, grouped);
  ops_->GroupByExpert(memory_.Ints({2}, {0, 1}), counters, grouped);

  std::vector<int64_t> expected(size_t{kPhases} * 6, 0);
  expected[1] = int64_t{1} << 20;          // token 0, group 0: 0.5, twice
  expected[3 + 1] = int64_t{4} << 20;      // token 0, group 1
  expected[6 + 1] = int64_t{8} << 20;      // token 1, group 0
  expected[6 + 3 + 0] = int64_t{1} << 19;  // token 1, group 1
  EXPECT_THAT(memory_.ReadLongs(counters.margin_sum), ElementsAreArray(expected));
}

TEST_P(GroupByExpertTest, BoundsWhatAMarginAddsToItsSum) {
  const TestRouting routing = {
      .tokens = 4, .experts = 4, .ids = {0, 1, 2, 3}, .gates = {1, 1, 1, 1}};
  GroupedRouting grouped = Grouped(*ops_, memory_, routing);
  grouped.routing.margins = memory_.Floats({4, 1}, {1e30F, kNan, kInfinity, 1024});
  RouterCounters counters = Counters(4);
  counters.margin_sum = memory_.Zeros(DType::kI64, {kPhases, 4});

  ops_->GroupByExpert(memory_.Zeros(DType::kI32, {4}), counters, grouped);

  const std::vector<int64_t> sums = memory_.ReadLongs(counters.margin_sum);
  EXPECT_THAT(
      std::vector<int64_t>(sums.begin(), sums.begin() + 4),
      ElementsAre(int64_t{1} << 30, 0, 0, int64_t{1} << 30)
  );
}

TEST_P(GroupByExpertTest, CountsEveryUsedSlotExactlyOnceInEveryPhase) {
  for (const int64_t tokens : OddTokenCounts()) {
    const TestRouting routing = RandomRouting(tokens, 3, 2, 5);
    const GroupedRouting grouped = Grouped(*ops_, memory_, routing);
    const std::vector<int32_t> phases = RandomInts(tokens, kPhases, 7);
    std::vector<int64_t> expected(size_t{kPhases} * 15, 0);
    for (size_t a = 0; a < routing.ids.size(); ++a) {
      if (routing.ids[a] >= 0) {
        const auto group = static_cast<int64_t>(a / 2 % 3);
        ++expected[static_cast<size_t>(int64_t{phases[a / 6]} * 15 + group * 5 + routing.ids[a])];
      }
    }
    const RouterCounters counters = Counters(15);

    ops_->GroupByExpert(memory_.Ints({tokens}, phases), counters, grouped);

    EXPECT_THAT(memory_.ReadLongs(counters.tokens), ElementsAreArray(expected));
  }
}

TEST_P(GroupByExpertTest, SumsGatesToTheSameTotalInAnyOrderOfTokens) {
  const TestRouting routing = RandomRouting(129, 1, 2, 4);
  std::vector<int64_t> backwards(129);
  std::iota(backwards.rbegin(), backwards.rend(), 0);
  const RouterCounters forward_counters = Counters(4);
  const RouterCounters backward_counters = Counters(4);
  const TensorView phases = memory_.Zeros(DType::kI32, {129});

  ops_->GroupByExpert(phases, forward_counters, Grouped(*ops_, memory_, routing));
  ops_->GroupByExpert(
      phases, backward_counters, Grouped(*ops_, memory_, RowsOf(routing, backwards))
  );

  EXPECT_EQ(
      memory_.ReadLongs(forward_counters.gate_sum), memory_.ReadLongs(backward_counters.gate_sum)
  );
}

using GroupByExpertDeathTest = GroupByExpertTest;
INSTANTIATE_TEST_SUITE_P(
    Backends, GroupByExpertDeathTest, testing::ValuesIn(HostBackendNames()), BackendTestName
);

TEST_P(GroupByExpertDeathTest, RefusesAnExpertOutsideTheGroup) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const TestRouting routing = {.tokens = 1, .experts = 2, .ids = {2}, .gates = {1}};

  EXPECT_DEATH(Grouped(*ops_, memory_, routing), "expert id 2");
}

}  // namespace
}  // namespace switchyard
