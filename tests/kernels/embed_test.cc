#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/kernels/op_test.h"

namespace switchyard {
namespace {

using testing::ElementsAre;

std::vector<float> Embedded(Ops& ops, int64_t tokens, int64_t dim, DType dtype) {
  OpsMemory memory(ops);
  const int32_t vocabulary = 11;
  const Weight table = memory.AddWeight(
      {.role = WeightRole::kEmbedding,
       .dtype = dtype,
       .shape = {vocabulary, dim},
       .values = RandomFloats(vocabulary * dim, 1)}
  );
  const TensorView out = memory.Zeros(DType::kF32, {tokens, dim});
  ops.Embed(table, memory.Ints({tokens}, RandomInts(tokens, vocabulary, 2)), 1.5F, out);
  return memory.ReadFloats(out);
}

class EmbedTest : public OpTest {};
INSTANTIATE_TEST_SUITE_P(Backends, EmbedTest, testing::ValuesIn(BackendNames()), BackendTestName);

TEST_P(EmbedTest, ScalesTheRowOfEachToken) {
  const Weight table = memory_.AddWeight(
      {.role = WeightRole::kEmbedding, .shape = {3, 2}, .values = {1, 2, 3, 4, 5, 6}}
  );
  const TensorView out = memory_.Zeros(DType::kF32, {3, 2});

  ops_->Embed(table, memory_.Ints({3}, {2, 0, 2}), 0.5F, out);

  EXPECT_THAT(memory_.ReadFloats(out), ElementsAre(2.5, 3, 0.5, 1, 2.5, 3));
}

TEST_P(EmbedTest, DoesNothingForNoTokens) {
  const Weight table =
      memory_.AddWeight({.role = WeightRole::kEmbedding, .shape = {1, 2}, .values = {1, 2}});
  const TensorView out = memory_.Zeros(DType::kF32, {0, 2});

  ops_->Embed(table, memory_.Ints({0}, {}), 1, out);

  EXPECT_THAT(memory_.ReadFloats(out), ElementsAre());
}

TEST_P(EmbedTest, CountsTheBytesOfTheRowsItReads) {
  const Weight table = memory_.AddWeight(
      {.role = WeightRole::kEmbedding,
       .dtype = DType::kBF16,
       .shape = {3, 2},
       .values = std::vector<float>(6)}
  );
  const int64_t before_bytes = ops_->WeightBytesRead();

  ops_->Embed(table, memory_.Ints({2}, {1, 2}), 1, memory_.Zeros(DType::kF32, {2, 2}));

  EXPECT_EQ(ops_->WeightBytesRead() - before_bytes, 2 * 2 * 2);
}

using EmbedDeathTest = EmbedTest;
INSTANTIATE_TEST_SUITE_P(
    Backends, EmbedDeathTest, testing::ValuesIn(HostBackendNames()), BackendTestName
);

TEST_P(EmbedDeathTest, RefusesATokenOutsideTheVocabulary) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const Weight table =
      memory_.AddWeight({.role = WeightRole::kEmbedding, .shape = {2, 1}, .values = {1, 2}});
  const TensorView ids = memory_.Ints({1}, {2});
  const TensorView out = memory_.Zeros(DType::kF32, {1, 1});

  EXPECT_DEATH(ops_->Embed(table, ids, 1, out), "token id 2");
}

class EmbedAgainstReferenceTest : public AgainstReferenceTest {};
INSTANTIATE_TEST_SUITE_P(
    Backends, EmbedAgainstReferenceTest, testing::ValuesIn(FastBackendNames()), BackendTestName
);

TEST_P(EmbedAgainstReferenceTest, GivesTheSameBits) {
  for (const auto& [tokens, dim] : OddSizes()) {
    for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF16}) {
      SCOPED_TRACE(testing::Message() << tokens << " " << dim << " " << NameOf(dtype));
      ExpectIdentical(
          Embedded(*ops_, tokens, dim, dtype), Embedded(*reference_, tokens, dim, dtype)
      );
    }
  }
}

}  // namespace
}  // namespace switchyard
