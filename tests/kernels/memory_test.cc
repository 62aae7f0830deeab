#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "tests/kernels/op_test.h"

namespace switchyard {
namespace {

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

class MemoryTest : public OpTest {};
INSTANTIATE_TEST_SUITE_P(Backends, MemoryTest, testing::ValuesIn(BackendNames()), BackendTestName);

TEST_P(MemoryTest, AllocatesZeros) {
  const TensorView view = memory_.Zeros(DType::kF32, {129});

  EXPECT_THAT(memory_.ReadFloats(view), Each(0.0F));
}

// Beyond the size of a huge page, and no multiple of it.
TEST_P(MemoryTest, AllocatesManyZeros) {
  const TensorView view = memory_.Zeros(DType::kF32, {3, 262'147});

  EXPECT_THAT(memory_.ReadFloats(view), Each(0.0F));
}

TEST_P(MemoryTest, AllocatesNothing) {
  const StatusOr<std::unique_ptr<Buffer>> buffer = ops_->Allocate(0);

  ASSERT_TRUE(buffer.ok()) << buffer.status();
  EXPECT_EQ((*buffer)->bytes(), 0);
}

TEST_P(MemoryTest, RefusesMoreThanThereIsWithBothNumbers) {
  const Status status = ops_->Allocate(int64_t{1} << 60).status();

  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(MessageOf(status), AllOf(HasSubstr("1152921504606846976"), HasSubstr("available")));
}

TEST_P(MemoryTest, DownloadsWhatWasUploaded) {
  const std::array<int32_t, 3> sent = {1, -2, 3};
  const TensorView view = memory_.Zeros(DType::kI32, {3});
  std::array<int32_t, 3> received = {};

  ops_->Upload(sent.data(), view.data(), view.bytes());
  ops_->Download(view.data(), received.data(), view.bytes());

  EXPECT_EQ(received, sent);
}

TEST_P(MemoryTest, CopiesAPartWithinItsMemory) {
  const TensorView from = memory_.Floats({4}, {1, 2, 3, 4});
  const TensorView to = memory_.Floats({3}, {7, 8, 9});

  ops_->Copy(from.f32() + 1, to.f32() + 1, 8);

  EXPECT_THAT(memory_.ReadFloats(to), ElementsAre(7, 2, 3));
}

TEST_P(MemoryTest, SaysHowMuchCanBeAllocated) {
  EXPECT_GT(ops_->AvailableBytes(), 0);
}

TEST_P(MemoryTest, FinishesWithoutAFault) {
  EXPECT_TRUE(ops_->Finish().ok());
}

TEST_P(MemoryTest, GivesWeightsTheirLogicalSizesWhateverTheLayout) {
  const std::vector<float> values(24, 1.0F);

  const Weight out_in =
      memory_.AddWeight({.role = WeightRole::kExpertStack, .shape = {2, 3, 4}, .values = values});
  const Weight in_out = memory_.AddWeight(
      {.role = WeightRole::kExpertStack,
       .layout = WeightLayout::kInOut,
       .shape = {2, 3, 4},
       .values = values}
  );

  EXPECT_EQ(out_in.experts, 2);
  EXPECT_EQ(out_in.in_features, 4);
  EXPECT_EQ(out_in.out_features, 3);
  EXPECT_EQ(in_out.experts, 2);
  EXPECT_EQ(in_out.in_features, 3);
  EXPECT_EQ(in_out.out_features, 4);
  EXPECT_NE(out_in.index, in_out.index);
}

TEST_P(MemoryTest, TakesVectorsAndEmbeddingsFromItsOwnMemory) {
  const Weight vector = memory_.AddWeight(
      {.role = WeightRole::kVector,
       .dtype = DType::kBF16,
       .shape = {3},
       .values = {2, 3, 4},
       .place = TensorPlace::kBackend}
  );
  const Weight table = memory_.AddWeight(
      {.role = WeightRole::kEmbedding,
       .shape = {2, 3},
       .values = {1, 2, 3, 4, 5, 6},
       .place = TensorPlace::kBackend}
  );
  const TensorView row = memory_.Zeros(DType::kF32, {1, 3});

  ops_->Embed(table, memory_.Ints({1}, {1}), 1, row);
  const std::vector<float> embedded = memory_.ReadFloats(row);
  const TensorView normed = memory_.Zeros(DType::kF32, {1, 3});
  ops_->Normalize(
      {.kind = NormKind::kRms, .weight = vector, .bias = {}, .epsilon = 0, .rows = {}},
      memory_.Floats({1, 3}, {1, 1, -1}),
      normed
  );

  EXPECT_THAT(embedded, ElementsAre(4, 5, 6));
  EXPECT_THAT(memory_.ReadFloats(normed), ElementsAre(2, 3, -4));
}

TEST_P(MemoryTest, GivesEmbeddingsAndVectorsTheirSizes) {
  const Weight table = memory_.AddWeight(
      {.role = WeightRole::kEmbedding, .shape = {3, 2}, .values = std::vector<float>(6)}
  );
  const Weight stack = memory_.AddWeight(
      {.role = WeightRole::kVectorStack, .shape = {3, 2}, .values = std::vector<float>(6)}
  );
  const Weight vector = memory_.AddVector({1, 2, 3});

  EXPECT_EQ(table.in_features, 3);
  EXPECT_EQ(table.out_features, 2);
  EXPECT_EQ(stack.experts, 3);
  EXPECT_EQ(stack.out_features, 2);
  EXPECT_EQ(vector.out_features, 3);
}

}  // namespace
}  // namespace switchyard
