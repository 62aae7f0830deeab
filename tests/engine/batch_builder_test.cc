#include "engine/batch_builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/backend.h"
#include "tests/engine/make_sequence.h"

namespace switchyard {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr BatchLimits kLimits{
    .max_step_tokens = 8, .max_sequences = 3, .max_blocks_per_sequence = 4, .block_tokens = 4};

class BatchBuilderTest : public ::testing::Test {
 protected:
  std::vector<int32_t> Read(TensorView view) {
    std::vector<int32_t> values(static_cast<size_t>(view.elements()));
    ops_->Download(view.data(), values.data(), view.bytes());
    return values;
  }

  BatchBuilder NewBuilder() { return *BatchBuilder::Create(*ops_, kLimits); }

  std::unique_ptr<Ops> ops_ = *MakeOps({.device = "reference"});
};

TEST_F(BatchBuilderTest, LaysAChunkAndADecodeSideBySide) {
  const auto chunk =
      MakeSequence({.prompt = {10, 11, 12, 13, 14, 15, 16}, .blocks = {7, 2}, .computed_tokens = 3}
      );
  const auto decode = MakeSequence(
      {.prompt = {20, 21, 22, 23},
       .generated = {30, 31},
       .blocks = {5, 0},
       .computed_tokens = 5,
       .stopping = {.max_tokens = 9}}
  );
  BatchBuilder builder = NewBuilder();

  const StepBatch batch = builder.Build(std::vector<SequenceSlice>{
      {.sequence = chunk.get(), .planned = {.first_token = 3, .tokens = 3}},
      {.sequence = decode.get(), .planned = {.first_token = 5, .tokens = 1, .samples = true}}});

  EXPECT_EQ(batch.tokens, 4);
  EXPECT_EQ(batch.sequences, 2);
  EXPECT_THAT(Read(batch.token_ids), ElementsAre(13, 14, 15, 31));
  EXPECT_THAT(Read(batch.positions), ElementsAre(3, 4, 5, 5));
  EXPECT_THAT(Read(batch.slots), ElementsAre(7 * 4 + 3, 2 * 4 + 0, 2 * 4 + 1, 0 * 4 + 1));
  EXPECT_THAT(Read(batch.query_offsets), ElementsAre(0, 3, 4));
  EXPECT_THAT(Read(batch.kv_lengths), ElementsAre(6, 6));
  EXPECT_THAT(Read(batch.block_tables), ElementsAre(7, 2, 5, 0));
  EXPECT_THAT(Read(batch.logit_rows), ElementsAre(3));
}

TEST_F(BatchBuilderTest, TellsPromptTokensFromGeneratedOnes) {
  const auto sequence = MakeSequence(
      {.prompt = {20, 21}, .generated = {30, 31}, .blocks = {1}, .stopping = {.max_tokens = 9}}
  );
  BatchBuilder builder = NewBuilder();

  const StepBatch batch = builder.Build(std::vector<SequenceSlice>{
      {.sequence = sequence.get(), .planned = {.first_token = 0, .tokens = 4, .samples = true}}});

  EXPECT_THAT(Read(batch.phases), ElementsAre(0, 0, 1, 1));
}

TEST_F(BatchBuilderTest, CountsEveryTokenOfAWarmUpAsWarmUp) {
  const auto sequence =
      MakeSequence({.prompt = {20}, .generated = {30}, .blocks = {1}, .stopping = {.max_tokens = 9}}
      );
  sequence->is_warm_up = true;
  BatchBuilder builder = NewBuilder();

  const StepBatch batch = builder.Build(std::vector<SequenceSlice>{
      {.sequence = sequence.get(), .planned = {.first_token = 0, .tokens = 2, .samples = true}}});

  EXPECT_THAT(Read(batch.phases), ElementsAre(3, 3));
}

TEST_F(BatchBuilderTest, FillsTheUnusedTailOfABlockTable) {
  const auto three_blocks =
      MakeSequence({.prompt = std::vector<int32_t>(9, 1), .blocks = {3, 1, 4}, .computed_tokens = 8}
      );
  const auto one_block = MakeSequence({.prompt = {1}, .blocks = {6}});
  BatchBuilder builder = NewBuilder();

  const StepBatch batch = builder.Build(std::vector<SequenceSlice>{
      {.sequence = three_blocks.get(), .planned = {.first_token = 8, .tokens = 1, .samples = true}},
      {.sequence = one_block.get(), .planned = {.first_token = 0, .tokens = 1, .samples = true}}});

  EXPECT_EQ(batch.block_tables.dim(0), 2);
  EXPECT_EQ(batch.block_tables.dim(1), 3);
  EXPECT_THAT(Read(batch.block_tables), ElementsAre(3, 1, 4, 6, -1, -1));
  EXPECT_THAT(Read(batch.logit_rows), ElementsAre(0, 1));
}

TEST_F(BatchBuilderTest, WantsNoLogitsFromAChunkThatEndsBeforeItsPrompt) {
  const auto chunk = MakeSequence({.prompt = {1, 2, 3}, .blocks = {6}});
  BatchBuilder builder = NewBuilder();

  const StepBatch batch = builder.Build(std::vector<SequenceSlice>{
      {.sequence = chunk.get(), .planned = {.first_token = 0, .tokens = 2}}});

  EXPECT_EQ(batch.logit_rows.dim(0), 0);
  EXPECT_THAT(Read(batch.logit_rows), IsEmpty());
}

TEST_F(BatchBuilderTest, ForgetsTheStepBefore) {
  const auto first = MakeSequence(
      {.prompt = {1, 2, 3, 4, 5, 6, 7, 8}, .blocks = {3, 2}, .stopping = {.max_tokens = 9}}
  );
  const auto second = MakeSequence({.prompt = {9}, .blocks = {6}});
  BatchBuilder builder = NewBuilder();
  builder.Build(std::vector<SequenceSlice>{
      {.sequence = first.get(), .planned = {.first_token = 0, .tokens = 8, .samples = true}}});

  const StepBatch batch = builder.Build(std::vector<SequenceSlice>{
      {.sequence = second.get(), .planned = {.first_token = 0, .tokens = 1, .samples = true}}});

  EXPECT_THAT(Read(batch.token_ids), ElementsAre(9));
  EXPECT_THAT(Read(batch.query_offsets), ElementsAre(0, 1));
  EXPECT_THAT(Read(batch.block_tables), ElementsAre(6));
}

TEST_F(BatchBuilderTest, TakesTheLargestStep) {
  const auto sequence = [](int32_t block) {
    return MakeSequence(
        {.prompt = std::vector<int32_t>(15, 1),
         .blocks = {block, block + 1, block + 2, block + 3},
         .computed_tokens = 12}
    );
  };
  const auto a = sequence(0);
  const auto b = sequence(4);
  const auto c = sequence(8);
  BatchBuilder builder = NewBuilder();

  const StepBatch batch = builder.Build(std::vector<SequenceSlice>{
      {.sequence = a.get(), .planned = {.first_token = 12, .tokens = 3, .samples = true}},
      {.sequence = b.get(), .planned = {.first_token = 12, .tokens = 3, .samples = true}},
      {.sequence = c.get(), .planned = {.first_token = 12, .tokens = 2}}});

  EXPECT_EQ(batch.tokens, 8);
  EXPECT_THAT(Read(batch.block_tables), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11));
  EXPECT_THAT(Read(batch.logit_rows), ElementsAre(2, 5));
}

}  // namespace
}  // namespace switchyard
