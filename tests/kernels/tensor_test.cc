#include "kernels/tensor.h"

#include <gtest/gtest.h>

#include <array>

namespace switchyard {
namespace {

TEST(Tensor, DoesNotExistWithoutMemory) {
  std::array<float, 2> values = {};

  EXPECT_FALSE(TensorView().exists());
  EXPECT_TRUE(TensorView(values.data(), DType::kF32, {2}).exists());
}

TEST(Tensor, CountsElementsRowsColumnsAndBytes) {
  std::array<uint16_t, 24> values = {};

  const TensorView view(values.data(), DType::kBF16, {2, 3, 4});

  EXPECT_EQ(view.rank(), 3);
  EXPECT_EQ(view.elements(), 24);
  EXPECT_EQ(view.rows(), 6);
  EXPECT_EQ(view.columns(), 4);
  EXPECT_EQ(view.bytes(), 48);
}

TEST(Tensor, IsEmptyWhenOneDimensionIsZero) {
  std::array<float, 1> values = {};

  const TensorView view(values.data(), DType::kF32, {0, 5});

  EXPECT_EQ(view.elements(), 0);
  EXPECT_EQ(view.rows(), 0);
  EXPECT_EQ(view.columns(), 5);
}

TEST(Tensor, SlicesWholeRowsOfTheOutermostDimension) {
  std::array<float, 12> values = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  const TensorView view(values.data(), DType::kF32, {3, 2, 2});

  const TensorView slice = view.Slice(1, 3);

  EXPECT_EQ(slice.ToString(), "f32 [2, 2, 2]");
  EXPECT_EQ(slice.f32()[0], 4);
}

TEST(Tensor, ReshapesTheSameMemory) {
  std::array<int32_t, 6> values = {};

  const TensorView reshaped = TensorView(values.data(), DType::kI32, {6}).Reshaped({2, 3});

  EXPECT_EQ(reshaped.ToString(), "i32 [2, 3]");
  EXPECT_EQ(reshaped.data(), values.data());
}

TEST(Tensor, NamesDTypesAndTheirBytes) {
  EXPECT_STREQ(NameOf(DType::kF16), "f16");
  EXPECT_STREQ(NameOf(DType::kU8), "u8");
  EXPECT_EQ(BytesOf(DType::kU8), 1);
  EXPECT_EQ(BytesOf(DType::kF16), 2);
  EXPECT_EQ(BytesOf(DType::kI32), 4);
  EXPECT_EQ(BytesOf(DType::kI64), 8);
}

TEST(TensorDeathTest, RefusesAnotherDType) {
  std::array<float, 2> values = {};
  const TensorView view(values.data(), DType::kF32, {2});

  EXPECT_DEATH(view.i32(), "f32 \\[2\\]");
}

TEST(TensorDeathTest, RefusesToReshapeToAnotherNumberOfElements) {
  std::array<float, 6> values = {};
  const TensorView view(values.data(), DType::kF32, {2, 3});

  EXPECT_DEATH(view.Reshaped({7}), "f32 \\[2, 3\\] to f32 \\[7\\]");
}

TEST(TensorDeathTest, RefusesASliceBeyondTheEnd) {
  std::array<float, 6> values = {};
  const TensorView view(values.data(), DType::kF32, {2, 3});

  EXPECT_DEATH(view.Slice(1, 3), "rows 1 to 3");
}

}  // namespace
}  // namespace switchyard
