#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/kernels/op_test.h"

namespace switchyard {
namespace {

using testing::ElementsAre;
using testing::Eq;
using testing::Pointwise;

struct Selection {
  std::vector<int32_t> ids;
  std::vector<float> gates;
  std::vector<float> margins;
};

struct Scores {
  int64_t tokens = 1;
  int64_t groups = 1;
  int32_t experts = 0;
  std::vector<float> values;
};

Selection Select(Ops& ops, GateKind gate, const Scores& scores, int64_t top_k) {
  OpsMemory memory(ops);
  const Routing routing = {
      .expert_ids = memory.Zeros(DType::kI32, {scores.tokens, scores.groups, top_k}),
      .gates = memory.Zeros(DType::kF32, {scores.tokens, scores.groups, top_k}),
      .experts = scores.experts,
      .margins = memory.Zeros(DType::kF32, {scores.tokens, scores.groups}),
  };
  ops.SelectExperts(
      gate, memory.Floats({scores.tokens, scores.groups, scores.experts}, scores.values), routing
  );
  return {
      memory.ReadInts(routing.expert_ids),
      memory.ReadFloats(routing.gates),
      memory.ReadFloats(routing.margins)};
}

class SelectExpertsTest : public OpTest {};
INSTANTIATE_TEST_SUITE_P(
    Backends, SelectExpertsTest, testing::ValuesIn(BackendNames()), BackendTestName
);

// The logarithms of 1, 4, 2, 3: a softmax over all gives tenths.
Scores Tenths() {
  return {.experts = 4, .values = {0, 1.3862944F, 0.6931472F, 1.0986123F}};
}

TEST_P(SelectExpertsTest, KeepsTheProbabilitiesOfASoftmaxOverAll) {
  const Selection selection = Select(*ops_, GateKind::kSoftmaxAll, Tenths(), 2);

  EXPECT_THAT(selection.ids, ElementsAre(1, 3));
  ExpectClose(selection.gates, {0.4F, 0.3F}, 1e-6F);
}

TEST_P(SelectExpertsTest, SumsToOneInASoftmaxOverTheSelected) {
  const Selection selection = Select(*ops_, GateKind::kSoftmaxSelected, Tenths(), 2);

  EXPECT_THAT(selection.ids, ElementsAre(1, 3));
  ExpectClose(selection.gates, {4.0F / 7, 3.0F / 7}, 1e-6F);
}

TEST_P(SelectExpertsTest, TakesTheSigmoidOfEachSelected) {
  const Selection selection = Select(*ops_, GateKind::kSigmoid, Tenths(), 3);

  EXPECT_THAT(selection.ids, ElementsAre(1, 3, 2));
  ExpectClose(selection.gates, {0.8F, 0.75F, 2.0F / 3}, 1e-6F);
}

TEST_P(SelectExpertsTest, SelectsWithinEachGroupOfEachToken) {
  const Scores scores = {
      .tokens = 2, .groups = 2, .experts = 3, .values = {0, 1, 2, 5, 4, 3, 7, 9, 8, 1, 1, 2}};

  const Selection selection = Select(*ops_, GateKind::kSigmoid, scores, 1);

  EXPECT_THAT(selection.ids, ElementsAre(2, 0, 1, 2));
}

TEST_P(SelectExpertsTest, PrefersTheLowestExpertAmongEquals) {
  const Scores scores = {.experts = 5, .values = {1, 2, 2, 1, 2}};

  EXPECT_THAT(Select(*ops_, GateKind::kSigmoid, scores, 2).ids, ElementsAre(1, 2));
  EXPECT_THAT(Select(*ops_, GateKind::kSigmoid, scores, 4).ids, ElementsAre(1, 2, 4, 0));
}

TEST_P(SelectExpertsTest, RanksNanBelowEveryNumber) {
  const Scores scores = {.experts = 4, .values = {kNan, -kInfinity, kNan, -1}};

  const Selection selection = Select(*ops_, GateKind::kSoftmaxSelected, scores, 2);

  EXPECT_THAT(selection.ids, ElementsAre(3, 1));
  ExpectClose(selection.gates, {1, 0}, 0);
}

TEST_P(SelectExpertsTest, StillGivesDistinctExpertsWhenAllScoresAreNan) {
  const Scores scores = {.experts = 3, .values = {kNan, kNan, kNan}};

  EXPECT_THAT(Select(*ops_, GateKind::kSoftmaxAll, scores, 2).ids, ElementsAre(0, 1));
}

TEST_P(SelectExpertsTest, DoesNotOverflowOnLargeScores) {
  const Scores scores = {.experts = 3, .values = {1000, 1000, -1000}};

  const Selection all = Select(*ops_, GateKind::kSoftmaxAll, scores, 3);
  const Selection sigmoid = Select(*ops_, GateKind::kSigmoid, scores, 3);

  ExpectClose(all.gates, {0.5F, 0.5F, 0}, 1e-6F);
  ExpectClose(sigmoid.gates, {1, 1, 0}, 1e-6F);
}

TEST_P(SelectExpertsTest, SelectsAllExpertsWhenTopKIsTheirNumber) {
  const Scores scores = {.experts = 3, .values = {2, 3, 1}};

  EXPECT_THAT(Select(*ops_, GateKind::kSigmoid, scores, 3).ids, ElementsAre(1, 0, 2));
}

// 5 - 4 and 7 + 8; of the two best, 3 - 1 and 2 - 2.
TEST_P(SelectExpertsTest, MeasuresHowFarTheChosenAreAboveTheRest) {
  const Scores one = {.tokens = 2, .experts = 4, .values = {4, 1, 5, 2, -8, -9, 7, -30}};
  const Scores two = {.groups = 2, .experts = 4, .values = {1, 3, 8, 0, 2, 2, 2, 9}};

  EXPECT_THAT(Select(*ops_, GateKind::kSigmoid, one, 1).margins, ElementsAre(1, 15));
  EXPECT_THAT(Select(*ops_, GateKind::kSoftmaxAll, two, 2).margins, ElementsAre(2, 0));
}

TEST_P(SelectExpertsTest, HasNoMarginWhenNothingIsLeftOut) {
  const Scores scores = {.experts = 3, .values = {2, 30, 1}};

  EXPECT_THAT(Select(*ops_, GateKind::kSoftmaxSelected, scores, 3).margins, ElementsAre(0));
}

TEST_P(SelectExpertsTest, MeasuresAMarginThatIsNotFiniteAsSuch) {
  const Scores scores = {.tokens = 3, .experts = 2, .values = {1, kNan, 1, -kInfinity, kNan, kNan}};

  const std::vector<float> margins = Select(*ops_, GateKind::kSigmoid, scores, 1).margins;

  EXPECT_TRUE(std::isnan(margins[0]));
  EXPECT_EQ(margins[1], kInfinity);
  EXPECT_TRUE(std::isnan(margins[2]));
}

using SelectExpertsDeathTest = SelectExpertsTest;
INSTANTIATE_TEST_SUITE_P(
    Backends, SelectExpertsDeathTest, testing::ValuesIn(BackendNames()), BackendTestName
);

TEST_P(SelectExpertsDeathTest, RefusesMoreThanAllExperts) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const Scores scores = {.experts = 2, .values = {1, 2}};

  EXPECT_DEATH(Select(*ops_, GateKind::kSigmoid, scores, 3), "top_k=3");
}

class SelectExpertsAgainstReferenceTest : public AgainstReferenceTest {};
INSTANTIATE_TEST_SUITE_P(
    Backends,
    SelectExpertsAgainstReferenceTest,
    testing::ValuesIn(FastBackendNames()),
    BackendTestName
);

TEST_P(SelectExpertsAgainstReferenceTest, AgreesForOddSizes) {
  for (const GateKind gate :
       {GateKind::kSoftmaxAll, GateKind::kSoftmaxSelected, GateKind::kSigmoid}) {
    for (const int64_t tokens : OddTokenCounts()) {
      const Scores scores = {
          .tokens = tokens,
          .groups = 3,
          .experts = 13,
          .values = RandomFloats(tokens * 3 * 13, 1),
      };
      const Selection expected = Select(*reference_, gate, scores, 5);

      const Selection actual = Select(*ops_, gate, scores, 5);

      EXPECT_THAT(actual.ids, Pointwise(Eq(), expected.ids));
      ExpectClose(actual.gates, expected.gates);
      ExpectIdentical(actual.margins, expected.margins);
    }
  }
}

}  // namespace
}  // namespace switchyard
