#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/kernels/op_test.h"

namespace switchyard {
namespace {

using testing::ElementsAre;
using testing::IsNan;

std::vector<float> Activated(Ops& ops, const ActivateArgs& args, int64_t tokens, int64_t dim) {
  OpsMemory memory(ops);
  const int64_t columns = args.gated ? 2 * dim : dim;
  std::vector<float> input = RandomFloats(tokens * columns, 1);
  for (float& value : input) {
    value *= 6;
  }
  const TensorView out = memory.Zeros(DType::kF32, {tokens, dim});
  ops.Activate(args, memory.Floats({tokens, columns}, input), out);
  return memory.ReadFloats(out);
}

class ActivateTest : public OpTest {
 protected:
  std::vector<float> Apply(ActivationKind kind, const std::vector<float>& input) {
    const auto dim = static_cast<int64_t>(input.size());
    const TensorView out = memory_.Zeros(DType::kF32, {1, dim});
    ops_->Activate({.kind = kind}, memory_.Floats({1, dim}, input), out);
    return memory_.ReadFloats(out);
  }
};
INSTANTIATE_TEST_SUITE_P(
    Backends, ActivateTest, testing::ValuesIn(BackendNames()), BackendTestName
);

TEST_P(ActivateTest, PassesTheIdentity) {
  EXPECT_THAT(Apply(ActivationKind::kIdentity, {-1.5F, 2}), ElementsAre(-1.5, 2));
}

TEST_P(ActivateTest, CutsNegativesInRelu) {
  EXPECT_THAT(Apply(ActivationKind::kRelu, {-1.5F, 0, 2}), ElementsAre(0, 0, 2));
}

TEST_P(ActivateTest, ComputesSilu) {
  // x / (1 + e^-x) at -1, 0, 2.
  ExpectClose(Apply(ActivationKind::kSilu, {-1, 0, 2}), {-0.26894142F, 0, 1.76159416F}, 1e-6F);
}

TEST_P(ActivateTest, ComputesTheExactGelu) {
  // x * Phi(x) with Phi(1) = 0.84134475 and Phi(-2) = 0.02275013.
  ExpectClose(Apply(ActivationKind::kGelu, {1, -2, 0}), {0.84134475F, -0.04550026F, 0}, 1e-6F);
}

TEST_P(ActivateTest, ComputesTheTanhGelu) {
  // 0.5 * (1 + tanh(sqrt(2 / pi) * 1.044715)) at 1.
  ExpectClose(Apply(ActivationKind::kGeluTanh, {1, -2, 0}), {0.84119199F, -0.04540231F, 0}, 1e-6F);
}

TEST_P(ActivateTest, ComputesTheSigmoid) {
  ExpectClose(Apply(ActivationKind::kSigmoid, {0, 2}), {0.5F, 0.88079708F}, 1e-6F);
}

TEST_P(ActivateTest, StaysFiniteFarFromZero) {
  for (const ActivationKind kind :
       {ActivationKind::kSilu, ActivationKind::kGelu, ActivationKind::kGeluTanh}) {
    ExpectClose(Apply(kind, {-200, 200}), {0, 200}, 1e-6F);
  }
  ExpectClose(Apply(ActivationKind::kSigmoid, {-200, 200}), {0, 1}, 1e-6F);
}

TEST_P(ActivateTest, KeepsNan) {
  for (const ActivationKind kind :
       {ActivationKind::kIdentity,
        ActivationKind::kRelu,
        ActivationKind::kSilu,
        ActivationKind::kGelu,
        ActivationKind::kGeluTanh,
        ActivationKind::kSigmoid}) {
    EXPECT_THAT(Apply(kind, {kNan}), ElementsAre(IsNan())) << static_cast<int>(kind);
  }
}

TEST_P(ActivateTest, MultipliesTheActivatedFirstHalfByTheSecond) {
  const TensorView out = memory_.Zeros(DType::kF32, {2, 2});

  ops_->Activate(
      {.kind = ActivationKind::kRelu, .gated = true},
      memory_.Floats({2, 4}, {1, -2, 3, 4, -5, 6, 7, 8}),
      out
  );

  EXPECT_THAT(memory_.ReadFloats(out), ElementsAre(3, 0, 0, 48));
}

TEST_P(ActivateTest, WorksInPlaceWhenNotGated) {
  const TensorView x = memory_.Floats({1, 2}, {-3, 3});

  ops_->Activate({.kind = ActivationKind::kRelu}, x, x);

  EXPECT_THAT(memory_.ReadFloats(x), ElementsAre(0, 3));
}

class ActivateAgainstReferenceTest : public AgainstReferenceTest {};
INSTANTIATE_TEST_SUITE_P(
    Backends, ActivateAgainstReferenceTest, testing::ValuesIn(FastBackendNames()), BackendTestName
);

TEST_P(ActivateAgainstReferenceTest, AgreesForOddSizes) {
  for (const ActivationKind kind :
       {ActivationKind::kIdentity,
        ActivationKind::kRelu,
        ActivationKind::kSilu,
        ActivationKind::kGelu,
        ActivationKind::kGeluTanh,
        ActivationKind::kSigmoid}) {
    for (const bool gated : {false, true}) {
      for (const auto& [tokens, dim] : OddSizes()) {
        const ActivateArgs args = {.kind = kind, .gated = gated};
        SCOPED_TRACE(testing::Message() << static_cast<int>(kind) << " " << gated << " " << dim);
        ExpectClose(
            Activated(*ops_, args, tokens, dim), Activated(*reference_, args, tokens, dim), 5e-6F
        );
      }
    }
  }
}

class AddTest : public OpTest {};
INSTANTIATE_TEST_SUITE_P(Backends, AddTest, testing::ValuesIn(BackendNames()), BackendTestName);

TEST_P(AddTest, AddsTheUpdateInPlace) {
  const TensorView x = memory_.Floats({2, 2}, {1, 2, 3, 4});

  ops_->Add(x, memory_.Floats({2, 2}, {0.5F, -2, 10, 0}));

  EXPECT_THAT(memory_.ReadFloats(x), ElementsAre(1.5, 0, 13, 4));
}

TEST_P(AddTest, ReachesEveryElementOfOddSizes) {
  for (const auto& [tokens, dim] : OddSizes()) {
    const std::vector<float> before = RandomFloats(tokens * dim, 1);
    const std::vector<float> update = RandomFloats(tokens * dim, 2);
    std::vector<float> expected = before;
    for (size_t i = 0; i < expected.size(); ++i) {
      expected[i] += update[i];
    }
    const TensorView x = memory_.Floats({tokens, dim}, before);

    ops_->Add(x, memory_.Floats({tokens, dim}, update));

    ExpectIdentical(memory_.ReadFloats(x), expected);
  }
}

// More than one thread takes at a time, and not a multiple of it.
TEST_P(AddTest, AddsEveryElementOfALargeTensorOnce) {
  const int64_t rows = 257;
  const int64_t columns = 131;
  const std::vector<float> ones(static_cast<size_t>(rows * columns), 1.0F);
  const TensorView x = memory_.Floats({rows, columns}, ones);

  ops_->Add(x, memory_.Floats({rows, columns}, ones));

  EXPECT_THAT(memory_.ReadFloats(x), testing::Each(2.0F));
}

}  // namespace
}  // namespace switchyard
