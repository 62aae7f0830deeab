#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/kernels/op_test.h"

namespace switchyard {
namespace {

using testing::FloatNear;
using testing::Pointwise;

std::vector<float> Normalized(Ops& ops, NormKind kind, int64_t tokens, int64_t dim, DType dtype) {
  OpsMemory memory(ops);
  const NormalizeArgs args = {
      .kind = kind,
      .weight = memory.AddVector(RandomFloats(dim, 1), dtype),
      .bias = kind == NormKind::kLayer ? memory.AddVector(RandomFloats(dim, 2), dtype) : Weight(),
      .epsilon = 1e-5F,
  };
  const TensorView out = memory.Zeros(DType::kF32, {tokens, dim});
  ops.Normalize(args, memory.Floats({tokens, dim}, RandomFloats(tokens * dim, 3)), out);
  return memory.ReadFloats(out);
}

class NormalizeTest : public OpTest {};
INSTANTIATE_TEST_SUITE_P(
    Backends, NormalizeTest, testing::ValuesIn(BackendNames()), BackendTestName
);

TEST_P(NormalizeTest, DividesByTheRootMeanSquare) {
  // Mean of the squares 1, 1, 49, 49 is 25; with epsilon 11 the root is 6.
  const NormalizeArgs args = {.weight = memory_.AddVector({1, 2, 3, 6}), .epsilon = 11};
  const TensorView out = memory_.Zeros(DType::kF32, {1, 4});

  ops_->Normalize(args, memory_.Floats({1, 4}, {1, -1, 7, -7}), out);

  ExpectClose(memory_.ReadFloats(out), {1.0F / 6, -2.0F / 6, 3.5F, -7}, 1e-6F);
}

TEST_P(NormalizeTest, SubtractsTheMeanAndDividesByTheDeviationInALayerNorm) {
  // Mean 4, squared deviations 9, 1, 1, 9: variance 5; with epsilon 4 the root is 3.
  const NormalizeArgs args = {
      .kind = NormKind::kLayer,
      .weight = memory_.AddVector({1, 3, 3, 2}),
      .bias = memory_.AddVector({0, 10, 0, 1}),
      .epsilon = 4,
  };
  const TensorView out = memory_.Zeros(DType::kF32, {1, 4});

  ops_->Normalize(args, memory_.Floats({1, 4}, {1, 3, 5, 7}), out);

  ExpectClose(memory_.ReadFloats(out), {-1, 9, 1, 3}, 1e-6F);
}

TEST_P(NormalizeTest, NeedsNoBiasInALayerNorm) {
  const NormalizeArgs args = {
      .kind = NormKind::kLayer, .weight = memory_.AddVector({1, 1}), .epsilon = 0};
  const TensorView out = memory_.Zeros(DType::kF32, {1, 2});

  ops_->Normalize(args, memory_.Floats({1, 2}, {5, 9}), out);

  ExpectClose(memory_.ReadFloats(out), {-1, 1}, 1e-6F);
}

TEST_P(NormalizeTest, TakesOnlyTheGivenRowsInTheirOrder) {
  const NormalizeArgs args = {
      .weight = memory_.AddVector({1}), .epsilon = 0, .rows = memory_.Ints({3}, {2, 0, 2})};
  const TensorView out = memory_.Zeros(DType::kF32, {3, 1});

  ops_->Normalize(args, memory_.Floats({3, 1}, {-5, 7, 9}), out);

  ExpectClose(memory_.ReadFloats(out), {1, -1, 1}, 1e-6F);
}

TEST_P(NormalizeTest, WorksInPlace) {
  const NormalizeArgs args = {.weight = memory_.AddVector({1, 1}), .epsilon = 0};
  const TensorView x = memory_.Floats({2, 2}, {3, 3, -2, 2});

  ops_->Normalize(args, x, x);

  ExpectClose(memory_.ReadFloats(x), {1, 1, -1, 1}, 1e-6F);
}

TEST_P(NormalizeTest, KeepsALargeMeanOutOfTheVariance) {
  const NormalizeArgs args = {
      .kind = NormKind::kLayer, .weight = memory_.AddVector({1, 1}), .epsilon = 0};
  const TensorView out = memory_.Zeros(DType::kF32, {1, 2});

  ops_->Normalize(args, memory_.Floats({1, 2}, {10000, 10002}), out);

  EXPECT_THAT(memory_.ReadFloats(out), Pointwise(FloatNear(1e-6F), std::vector<float>{-1, 1}));
}

TEST_P(NormalizeTest, PassesTheGivenRowsUnchangedWithoutANorm) {
  const NormalizeArgs args = {.kind = NormKind::kNone, .rows = memory_.Ints({2}, {2, 0})};
  const TensorView out = memory_.Zeros(DType::kF32, {2, 2});

  ops_->Normalize(args, memory_.Floats({3, 2}, {1, 2, 3, 4, 5, 6}), out);

  ExpectIdentical(memory_.ReadFloats(out), {5, 6, 1, 2});
}

TEST_P(NormalizeTest, PassesAllRowsUnchangedInPlaceWithoutANorm) {
  const TensorView x = memory_.Floats({1, 3}, {7, 8, 9});

  ops_->Normalize({.kind = NormKind::kNone}, x, x);

  ExpectIdentical(memory_.ReadFloats(x), {7, 8, 9});
}

class NormalizeAgainstReferenceTest : public AgainstReferenceTest {};
INSTANTIATE_TEST_SUITE_P(
    Backends, NormalizeAgainstReferenceTest, testing::ValuesIn(FastBackendNames()), BackendTestName
);

TEST_P(NormalizeAgainstReferenceTest, AgreesForOddSizes) {
  for (const NormKind kind : {NormKind::kRms, NormKind::kLayer}) {
    for (const auto& [tokens, dim] : OddSizes()) {
      const DType dtype = dim == 40 ? DType::kBF16 : DType::kF32;
      SCOPED_TRACE(testing::Message() << static_cast<int>(kind) << " " << tokens << " " << dim);
      ExpectClose(
          Normalized(*ops_, kind, tokens, dim, dtype),
          Normalized(*reference_, kind, tokens, dim, dtype)
      );
    }
  }
}

}  // namespace
}  // namespace switchyard
