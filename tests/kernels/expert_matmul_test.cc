#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/kernels/op_test.h"
#include "tests/kernels/test_routing.h"

namespace switchyard {
namespace {

using testing::Each;
using testing::ElementsAre;

struct Rows {
  RowOf input = RowOf::kToken;
  RowOf output = RowOf::kAssignment;
};

int64_t RowCount(const TestRouting& routing, RowOf row_of) {
  switch (row_of) {
    case RowOf::kToken:
      return routing.tokens;
    case RowOf::kGroup:
      return routing.tokens * routing.groups;
    case RowOf::kAssignment:
      return routing.tokens * routing.groups * routing.top_k;
  }
  return 0;
}

struct ExpertCase {
  TestRouting routing;
  Rows rows;
  int64_t in_features = 0;
  int64_t out_features = 0;
  WeightForm form;
};

std::vector<float> Product(Ops& ops, const ExpertCase& shape) {
  OpsMemory memory(ops);
  const TestRouting& routing = shape.routing;
  const int64_t experts = routing.groups * routing.experts;
  const bool out_first = shape.form.layout == WeightLayout::kOutIn;
  const int64_t first = out_first ? shape.out_features : shape.in_features;
  const int64_t second = out_first ? shape.in_features : shape.out_features;
  const int64_t input_rows = RowCount(routing, shape.rows.input);
  const ExpertMatMulArgs args = {
      .weight = memory.AddWeight(
          {.role = WeightRole::kExpertStack,
           .layout = shape.form.layout,
           .dtype = shape.form.dtype,
           .shape = {experts, first, second},
           .values = RandomFloats(experts * first * second, 1)}
      ),
      .expert_bias = memory.AddWeight(
          {.role = WeightRole::kVectorStack,
           .dtype = shape.form.dtype,
           .shape = {experts, shape.out_features},
           .values = RandomFloats(experts * shape.out_features, 2)}
      ),
      .bias = memory.AddVector(RandomFloats(shape.out_features, 3), shape.form.dtype),
      .grouped = Grouped(ops, memory, routing),
      .input = memory.Floats(
          {input_rows, shape.in_features}, RandomFloats(input_rows * shape.in_features, 4)
      ),
      .input_rows = shape.rows.input,
      .output_rows = shape.rows.output,
      .gated = shape.rows.output != RowOf::kAssignment,
  };
  const TensorView out =
      memory.Zeros(DType::kF32, {RowCount(routing, shape.rows.output), shape.out_features});
  ops.ExpertMatMul(args, out);
  return memory.ReadFloats(out);
}

class ExpertMatMulTest : public OpTest {
 protected:
  // Three experts of one input and two outputs: (1, 10), (2, 20), (3, 30).
  Weight ThreeExperts() {
    return memory_.AddWeight(
        {.role = WeightRole::kExpertStack, .shape = {3, 2, 1}, .values = {1, 10, 2, 20, 3, 30}}
    );
  }
  Weight AddExpertBias(const std::vector<float>& values) {
    return memory_.AddWeight({.role = WeightRole::kVectorStack, .shape = {3, 2}, .values = values});
  }
  // Rows of -7, so that a row that is not written shows.
  TensorView Out(int64_t rows) {
    return memory_.Floats({rows, 2}, std::vector<float>(static_cast<size_t>(rows * 2), -7));
  }
};
INSTANTIATE_TEST_SUITE_P(
    Backends, ExpertMatMulTest, testing::ValuesIn(BackendNames()), BackendTestName
);

const TestRouting kTwoTokens = {
    .tokens = 2, .top_k = 2, .experts = 3, .ids = {2, 0, 1, 2}, .gates = {0.5F, 0.25F, 0.125F, 2}};

TEST_P(ExpertMatMulTest, GivesEachAssignmentItsOwnRow) {
  const ExpertMatMulArgs args = {
      .weight = ThreeExperts(),
      .grouped = Grouped(*ops_, memory_, kTwoTokens),
      .input = memory_.Floats({2, 1}, {1, 4}),
  };
  const TensorView out = Out(4);

  ops_->ExpertMatMul(args, out);

  EXPECT_THAT(memory_.ReadFloats(out), ElementsAre(3, 30, 1, 10, 8, 80, 12, 120));
}

TEST_P(ExpertMatMulTest, GatesAssignmentRowsWhenAsked) {
  const ExpertMatMulArgs args = {
      .weight = ThreeExperts(),
      .grouped = Grouped(*ops_, memory_, kTwoTokens),
      .input = memory_.Floats({2, 1}, {1, 4}),
      .gated = true,
  };
  const TensorView out = Out(4);

  ops_->ExpertMatMul(args, out);

  EXPECT_THAT(memory_.ReadFloats(out), ElementsAre(1.5, 15, 0.25, 2.5, 1, 10, 24, 240));
}

TEST_P(ExpertMatMulTest, SumsTheGatedProductsOfAToken) {
  const ExpertMatMulArgs args = {
      .weight = ThreeExperts(),
      .grouped = Grouped(*ops_, memory_, kTwoTokens),
      .input = memory_.Floats({4, 1}, {1, 2, 3, 4}),
      .input_rows = RowOf::kAssignment,
      .output_rows = RowOf::kToken,
      .gated = true,
  };
  const TensorView out = Out(2);

  ops_->ExpertMatMul(args, out);

  // 0.5 * 3 * 1 + 0.25 * 1 * 2 and 0.125 * 2 * 3 + 2 * 3 * 4.
  EXPECT_THAT(memory_.ReadFloats(out), ElementsAre(2, 20, 24.75, 247.5));
}

TEST_P(ExpertMatMulTest, AddsTheExpertBiasBeforeTheGateAndTheBiasOnceAfterIt) {
  const ExpertMatMulArgs args = {
      .weight = ThreeExperts(),
      .expert_bias = AddExpertBias({1, 1, 2, 2, 4, 8}),
      .bias = memory_.AddVector({100, 200}),
      .grouped = Grouped(*ops_, memory_, kTwoTokens),
      .input = memory_.Floats({2, 1}, {1, 4}),
      .output_rows = RowOf::kToken,
      .gated = true,
  };
  const TensorView out = Out(2);

  ops_->ExpertMatMul(args, out);

  // 0.5 * (3 + 4) + 0.25 * (1 + 1) + 100, and so on.
  EXPECT_THAT(memory_.ReadFloats(out), ElementsAre(104, 221.75, 133.25, 466.25));
}

TEST_P(ExpertMatMulTest, SumsOverTheSlotsOfEachGroup) {
  // One token, two groups of two experts, both slots used: values for each head.
  const TestRouting routing = {
      .tokens = 1,
      .groups = 2,
      .top_k = 2,
      .experts = 2,
      .ids = {1, 0, 0, 1},
      .gates = {1, 2, 3, 4}};
  const ExpertMatMulArgs args = {
      .weight = memory_.AddWeight(
          {.role = WeightRole::kExpertStack, .shape = {4, 1, 1}, .values = {1, 10, 100, 1000}}
      ),
      .grouped = Grouped(*ops_, memory_, routing),
      .input = memory_.Floats({1, 1}, {1}),
      .output_rows = RowOf::kGroup,
      .gated = true,
  };
  const TensorView out = memory_.Zeros(DType::kF32, {2, 1});

  ops_->ExpertMatMul(args, out);

  EXPECT_THAT(memory_.ReadFloats(out), ElementsAre(12, 4300));
}

TEST_P(ExpertMatMulTest, SumsTheHeadsOfATokenFromRowsOfEachGroup) {
  const TestRouting routing = {
      .tokens = 1, .groups = 2, .top_k = 1, .experts = 2, .ids = {1, 0}, .gates = {0.5F, 0.25F}};
  const ExpertMatMulArgs args = {
      .weight = memory_.AddWeight(
          {.role = WeightRole::kExpertStack, .shape = {4, 1, 1}, .values = {1, 10, 100, 1000}}
      ),
      .grouped = Grouped(*ops_, memory_, routing),
      .input = memory_.Floats({2, 1}, {2, 4}),
      .input_rows = RowOf::kGroup,
      .output_rows = RowOf::kToken,
      .gated = true,
  };
  const TensorView out = memory_.Zeros(DType::kF32, {1, 1});

  ops_->ExpertMatMul(args, out);

  EXPECT_THAT(memory_.ReadFloats(out), ElementsAre(110));
}

TEST_P(ExpertMatMulTest, ReadsInOutStacksAsTheyLie) {
  const TestRouting routing = {.tokens = 1, .top_k = 1, .experts = 2, .ids = {1}, .gates = {1}};
  const ExpertMatMulArgs args = {
      .weight = memory_.AddWeight(
          {.role = WeightRole::kExpertStack,
           .layout = WeightLayout::kInOut,
           .shape = {2, 2, 3},
           .values = {0, 0, 0, 0, 0, 0, 1, 2, 3, 10, 20, 30}}
      ),
      .grouped = Grouped(*ops_, memory_, routing),
      .input = memory_.Floats({1, 2}, {1, 2}),
  };
  const TensorView out = memory_.Zeros(DType::kF32, {1, 3});

  ops_->ExpertMatMul(args, out);

  EXPECT_THAT(memory_.ReadFloats(out), ElementsAre(21, 42, 63));
}

TEST_P(ExpertMatMulTest, WritesZerosForAnUnusedAssignment) {
  const TestRouting routing = {
      .tokens = 1, .top_k = 2, .experts = 3, .ids = {1, -1}, .gates = {1, 0}};
  const ExpertMatMulArgs args = {
      .weight = ThreeExperts(),
      .bias = memory_.AddVector({5, 5}),
      .grouped = Grouped(*ops_, memory_, routing),
      .input = memory_.Floats({1, 1}, {1}),
  };
  const TensorView out = Out(2);

  ops_->ExpertMatMul(args, out);

  EXPECT_THAT(memory_.ReadFloats(out), ElementsAre(7, 25, 0, 0));
}

TEST_P(ExpertMatMulTest, GivesATokenWithoutExpertsItsBiasOnly) {
  const TestRouting routing = {
      .tokens = 1, .top_k = 2, .experts = 3, .ids = {-1, -1}, .gates = {0, 0}};
  const ExpertMatMulArgs args = {
      .weight = ThreeExperts(),
      .expert_bias = AddExpertBias({1, 1, 2, 2, 4, 8}),
      .bias = memory_.AddVector({5, 6}),
      .grouped = Grouped(*ops_, memory_, routing),
      .input = memory_.Floats({1, 1}, {1}),
      .output_rows = RowOf::kToken,
      .gated = true,
  };
  const TensorView out = Out(1);

  ops_->ExpertMatMul(args, out);

  EXPECT_THAT(memory_.ReadFloats(out), ElementsAre(5, 6));
}

TEST_P(ExpertMatMulTest, DoesNothingForNoTokens) {
  const TestRouting routing = {.tokens = 0, .top_k = 2, .experts = 3};
  const ExpertMatMulArgs args = {
      .weight = ThreeExperts(),
      .grouped = Grouped(*ops_, memory_, routing),
      .input = memory_.Floats({0, 1}, {}),
  };

  ops_->ExpertMatMul(args, Out(0));

  EXPECT_TRUE(ops_->Finish().ok());
}

TEST_P(ExpertMatMulTest, CountsTheBytesOfEachTouchedExpertOnce) {
  const TestRouting routing = {
      .tokens = 3, .top_k = 1, .experts = 3, .ids = {2, 2, 0}, .gates = {1, 1, 1}};
  const ExpertMatMulArgs args = {
      .weight = ThreeExperts(),
      .grouped = Grouped(*ops_, memory_, routing),
      .input = memory_.Floats({3, 1}, {1, 1, 1}),
  };
  const int64_t before_bytes = ops_->WeightBytesRead();

  ops_->ExpertMatMul(args, Out(3));

  EXPECT_EQ(ops_->WeightBytesRead() - before_bytes, 2 * 2 * 4);
}

using ExpertMatMulDeathTest = ExpertMatMulTest;
INSTANTIATE_TEST_SUITE_P(
    Backends, ExpertMatMulDeathTest, testing::ValuesIn(BackendNames()), BackendTestName
);

TEST_P(ExpertMatMulDeathTest, RefusesASumWithoutGates) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const ExpertMatMulArgs args = {
      .weight = ThreeExperts(),
      .grouped = Grouped(*ops_, memory_, kTwoTokens),
      .input = memory_.Floats({2, 1}, {1, 4}),
      .output_rows = RowOf::kToken,
  };
  const TensorView out = Out(2);

  EXPECT_DEATH(ops_->ExpertMatMul(args, out), "gate");
}

class ExpertMatMulAgainstReferenceTest : public AgainstReferenceTest {};
INSTANTIATE_TEST_SUITE_P(
    Backends,
    ExpertMatMulAgainstReferenceTest,
    testing::ValuesIn(FastBackendNames()),
    BackendTestName
);

constexpr Rows kRowKinds[] = {
    {RowOf::kToken, RowOf::kAssignment},
    {RowOf::kAssignment, RowOf::kToken},
    {RowOf::kToken, RowOf::kGroup},
    {RowOf::kGroup, RowOf::kToken},
    {RowOf::kToken, RowOf::kToken},
    {RowOf::kAssignment, RowOf::kAssignment},
};

TEST_P(ExpertMatMulAgainstReferenceTest, AgreesForEveryKindOfRowsAndWeights) {
  for (const Rows& rows : kRowKinds) {
    for (const WeightForm& form : WeightForms()) {
      for (const int64_t tokens : OddTokenCounts()) {
        const ExpertCase shape = {RandomRouting(tokens, 3, 2, 4), rows, 40, 19, form};
        SCOPED_TRACE(
            testing::Message() << tokens << " " << static_cast<int>(rows.input) << " to "
                               << static_cast<int>(rows.output) << " " << NameOf(form.dtype)
        );
        ExpectClose(Product(*ops_, shape), Product(*reference_, shape));
      }
    }
  }
}

TEST_P(ExpertMatMulAgainstReferenceTest, AgreesForOddDims) {
  for (const WeightForm& form : WeightForms()) {
    for (const int64_t in_features : OddDims()) {
      for (const int64_t out_features : OddDims()) {
        const Rows rows = {RowOf::kToken, RowOf::kToken};
        const ExpertCase shape = {RandomRouting(7, 1, 3, 5), rows, in_features, out_features, form};
        SCOPED_TRACE(testing::Message() << in_features << " to " << out_features);
        ExpectClose(Product(*ops_, shape), Product(*reference_, shape));
      }
    }
  }
}

TEST(RandomRouting, LeavesOneExpertWithoutTokens) {
  EXPECT_THAT(RandomRouting(129, 3, 2, 4).ids, Each(testing::Ne(1)));
}

}  // namespace
}  // namespace switchyard
