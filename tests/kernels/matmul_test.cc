#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/kernels/op_test.h"

namespace switchyard {
namespace {

using testing::ElementsAre;

struct MatMulCase {
  int64_t tokens = 0;
  int64_t in_features = 0;
  int64_t out_features = 0;
  WeightForm form;
  TensorPlace place = TensorPlace::kHost;
};

std::vector<float> Product(Ops& ops, const MatMulCase& shape) {
  OpsMemory memory(ops);
  const bool out_first = shape.form.layout == WeightLayout::kOutIn;
  const int64_t first = out_first ? shape.out_features : shape.in_features;
  const int64_t second = out_first ? shape.in_features : shape.out_features;
  const MatMulArgs args = {
      .weight = memory.AddWeight(
          {.layout = shape.form.layout,
           .dtype = shape.form.dtype,
           .shape = {first, second},
           .values = RandomFloats(first * second, 1),
           .place = shape.place}
      ),
      .bias = memory.AddVector(RandomFloats(shape.out_features, 2), shape.form.dtype),
  };
  const std::vector<float> input = RandomFloats(shape.tokens * shape.in_features, 3);
  const TensorView out = memory.Zeros(DType::kF32, {shape.tokens, shape.out_features});
  ops.MatMul(args, memory.Floats({shape.tokens, shape.in_features}, input), out);
  return memory.ReadFloats(out);
}

class MatMulTest : public OpTest {};
INSTANTIATE_TEST_SUITE_P(Backends, MatMulTest, testing::ValuesIn(BackendNames()), BackendTestName);

TEST_P(MatMulTest, TakesWeightsFromTheBackendsOwnMemory) {
  for (const WeightForm& form : WeightForms()) {
    for (const int64_t in_features : {32, 37}) {  // with and without padding on a device
      const MatMulCase shape = {
          .tokens = 3, .in_features = in_features, .out_features = 5, .form = form};
      MatMulCase from_backend = shape;
      from_backend.place = TensorPlace::kBackend;

      ExpectIdentical(Product(*ops_, from_backend), Product(*ops_, shape));
    }
  }
}

TEST_P(MatMulTest, MultipliesByTheTransposeOfAnOutInWeight) {
  const MatMulArgs args = {
      .weight = memory_.AddWeight({.shape = {2, 3}, .values = {1, 2, 3, 4, 5, 6}})};
  const TensorView out = memory_.Zeros(DType::kF32, {2, 2});

  ops_->MatMul(args, memory_.Floats({2, 3}, {1, 0, -1, 1, 1, 1}), out);

  EXPECT_THAT(memory_.ReadFloats(out), ElementsAre(-2, -2, 6, 15));
}

TEST_P(MatMulTest, MultipliesByAnInOutWeightAsItLies) {
  const MatMulArgs args = {
      .weight = memory_.AddWeight(
          {.layout = WeightLayout::kInOut, .shape = {3, 2}, .values = {1, 2, 3, 4, 5, 6}}
      )};
  const TensorView out = memory_.Zeros(DType::kF32, {2, 2});

  ops_->MatMul(args, memory_.Floats({2, 3}, {1, 0, -1, 1, 1, 1}), out);

  EXPECT_THAT(memory_.ReadFloats(out), ElementsAre(-4, -4, 9, 12));
}

TEST_P(MatMulTest, AddsTheBiasToEachRow) {
  const MatMulArgs args = {
      .weight = memory_.AddWeight({.shape = {2, 1}, .values = {1, 2}}),
      .bias = memory_.AddVector({0.5F, -0.5F}),
  };
  const TensorView out = memory_.Zeros(DType::kF32, {2, 2});

  ops_->MatMul(args, memory_.Floats({2, 1}, {3, 4}), out);

  EXPECT_THAT(memory_.ReadFloats(out), ElementsAre(3.5, 5.5, 4.5, 7.5));
}

TEST_P(MatMulTest, WidensHalfPrecisionWeights) {
  for (const DType dtype : {DType::kBF16, DType::kF16}) {
    const MatMulArgs args = {
        .weight = memory_.AddWeight({.dtype = dtype, .shape = {1, 2}, .values = {1.5F, -0.25F}})};
    const TensorView out = memory_.Zeros(DType::kF32, {1, 1});

    ops_->MatMul(args, memory_.Floats({1, 2}, {1.0009765625F, 4}), out);

    EXPECT_THAT(memory_.ReadFloats(out), ElementsAre(0.50146484375F)) << NameOf(dtype);
  }
}

TEST_P(MatMulTest, DoesNothingForNoRows) {
  const MatMulArgs args = {.weight = memory_.AddWeight({.shape = {1, 1}, .values = {1}})};
  const TensorView out = memory_.Zeros(DType::kF32, {0, 1});

  ops_->MatMul(args, memory_.Floats({0, 1}, {}), out);

  EXPECT_THAT(memory_.ReadFloats(out), ElementsAre());
}

TEST_P(MatMulTest, CountsTheBytesOfTheWeightOnceForACall) {
  const MatMulArgs args = {
      .weight =
          memory_.AddWeight({.dtype = DType::kF16, .shape = {2, 3}, .values = std::vector<float>(6)}
          )};
  const TensorView out = memory_.Zeros(DType::kF32, {5, 2});
  const int64_t before_bytes = ops_->WeightBytesRead();

  ops_->MatMul(args, memory_.Zeros(DType::kF32, {5, 3}), out);

  EXPECT_EQ(ops_->WeightBytesRead() - before_bytes, 12);
}

using MatMulDeathTest = MatMulTest;
INSTANTIATE_TEST_SUITE_P(
    Backends, MatMulDeathTest, testing::ValuesIn(BackendNames()), BackendTestName
);

TEST_P(MatMulDeathTest, NamesTheShapesThatDoNotFit) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const MatMulArgs args = {.weight = memory_.AddWeight({.shape = {1, 3}, .values = {1, 2, 3}})};
  const TensorView input = memory_.Zeros(DType::kF32, {1, 2});
  const TensorView out = memory_.Zeros(DType::kF32, {1, 1});

  EXPECT_DEATH(ops_->MatMul(args, input, out), "input is f32 \\[1, 2\\]");
}

class MatMulAgainstReferenceTest : public AgainstReferenceTest {};
INSTANTIATE_TEST_SUITE_P(
    Backends, MatMulAgainstReferenceTest, testing::ValuesIn(FastBackendNames()), BackendTestName
);

TEST_P(MatMulAgainstReferenceTest, AgreesForOddSizes) {
  for (const WeightForm& form : WeightForms()) {
    for (const auto& [tokens, in_features] : OddSizes()) {
      for (const int64_t out_features : OddDims()) {
        const MatMulCase shape = {tokens, in_features, out_features, form};
        SCOPED_TRACE(
            testing::Message() << tokens << " rows " << in_features << " to " << out_features << " "
                               << NameOf(form.dtype)
        );
        ExpectClose(Product(*ops_, shape), Product(*reference_, shape));
      }
    }
  }
}

TEST_P(MatMulAgainstReferenceTest, AgreesForLongSums) {
  for (const WeightForm& form : WeightForms()) {
    const MatMulCase shape = {.tokens = 33, .in_features = 1537, .out_features = 67, .form = form};
    SCOPED_TRACE(NameOf(form.dtype));

    ExpectClose(Product(*ops_, shape), Product(*reference_, shape), 1e-4F);
  }
}

}  // namespace
}  // namespace switchyard
