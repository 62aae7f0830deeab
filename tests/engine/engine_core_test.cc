#include "engine/engine_core.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "kernels/backend.h"
#include "kernels/reference/reference_ops.h"
#include "tests/engine/driven_engine.h"

namespace switchyard {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

TEST(EngineCore, EndsAtMaxTokensWithUsage) {
  DrivenEngine engine({});

  const auto sink = engine.Add(GreedyRequest(Prompt(5), 7));
  engine.RunAll();

  EXPECT_THAT(sink->tokens, SizeIs(7));
  EXPECT_THAT(sink->stop_tokens, Each(false));
  ASSERT_TRUE(sink->finished.has_value());
  EXPECT_EQ(sink->finished->reason, FinishReason::kLength);
  EXPECT_EQ(sink->finished->prompt_tokens, 5);
  EXPECT_EQ(sink->finished->completion_tokens, 7);
  EXPECT_EQ(sink->finished_calls, 1);
  EXPECT_TRUE(engine.all_blocks_are_free());
}

TEST(EngineCore, GivesEveryStreamATokenInEachStepWhileALongPromptIsComputed) {
  DrivenEngine engine(
      {.model = {.context_tokens = 600},
       .limits = {.max_step_tokens = 16, .max_running = 4, .block_tokens = 4},
       .blocks = 300}
  );
  const auto first = engine.Add(GreedyRequest({1, 2, 3}, 100));
  const auto second = engine.Add(GreedyRequest({4, 5}, 100));
  engine.core().Step();
  const auto longest = engine.Add(GreedyRequest(Prompt(500), 5));

  // 500 tokens beside two decodes, 14 at a time.
  for (size_t step = 1; step <= 36; ++step) {
    ASSERT_TRUE(engine.core().Step());
    EXPECT_EQ(first->tokens.size(), 1 + step);
    EXPECT_EQ(second->tokens.size(), 1 + step);
  }

  EXPECT_EQ(longest->tokens.size(), 1);
}

TEST(EngineCore, EndsAtTheEndOfTheContext) {
  DrivenEngine engine({.model = {.context_tokens = 20}});

  const auto sink = engine.Add(GreedyRequest(Prompt(15), 1000));
  engine.RunAll();

  EXPECT_THAT(sink->tokens, SizeIs(5));
  EXPECT_EQ(sink->finished->reason, FinishReason::kLength);
}

TEST(EngineCore, StopsAtAStopTokenAndCountsIt) {
  const std::vector<int32_t> free_run = GreedyTokens(Prompt(5), 8);
  DrivenEngine engine({});
  GenerationRequest request = GreedyRequest(Prompt(5), 8);
  request.stopping.stop_token_ids = {free_run[2]};
  const auto first =
      std::find(free_run.begin(), free_run.end(), free_run[2]) - free_run.begin() + 1;

  const auto sink = engine.Add(std::move(request));
  engine.RunAll();

  EXPECT_THAT(sink->tokens, SizeIs(first));
  EXPECT_TRUE(sink->stop_tokens.back());
  EXPECT_EQ(sink->finished->reason, FinishReason::kStop);
  EXPECT_EQ(sink->finished->stop_token_id, free_run[2]);
  EXPECT_FALSE(sink->finished->stop_is_eos);
  EXPECT_EQ(sink->finished->completion_tokens, first);
  EXPECT_TRUE(engine.all_blocks_are_free());
}

TEST(EngineCore, StopsAtEndOfSequenceUnlessItIsIgnored) {
  const std::vector<int32_t> free_run = GreedyTokens(Prompt(5), 8);
  DrivenEngine engine({.model = {.eos_id = free_run[0]}});
  GenerationRequest stopping = GreedyRequest(Prompt(5), 8);
  stopping.stopping.ignore_eos = false;

  const auto stopped = engine.Add(std::move(stopping));
  const auto ignoring = engine.Add(GreedyRequest(Prompt(5), 8));
  engine.RunAll();

  EXPECT_THAT(stopped->tokens, ElementsAre(free_run[0]));
  EXPECT_EQ(stopped->finished->reason, FinishReason::kStop);
  EXPECT_EQ(stopped->finished->stop_token_id, free_run[0]);
  EXPECT_TRUE(stopped->finished->stop_is_eos);
  EXPECT_EQ(ignoring->tokens, free_run);
  EXPECT_EQ(ignoring->finished->reason, FinishReason::kLength);
}

TEST(EngineCore, ChoosesNoEndOfSequenceBeforeMinTokens) {
  const std::vector<int32_t> free_run = GreedyTokens(Prompt(5), 8);
  DrivenEngine engine({.model = {.eos_id = free_run[0]}});
  GenerationRequest request = GreedyRequest(Prompt(5), 8);
  request.stopping.ignore_eos = false;
  request.stopping.min_tokens = 3;

  const auto sink = engine.Add(std::move(request));
  engine.RunAll();

  ASSERT_GE(sink->tokens.size(), 3);
  EXPECT_THAT(
      std::vector<int32_t>(sink->tokens.begin(), sink->tokens.begin() + 3),
      Each(testing::Ne(free_run[0]))
  );
}

TEST(EngineCore, EndsWhenTheSinkSaysStop) {
  DrivenEngine engine({});
  const auto sink = engine.Add(GreedyRequest(Prompt(5), 8));
  sink->on_token = [](const TokenEvent& event) {
    return event.completion_tokens == 3 ? Verdict::kStop : Verdict::kContinue;
  };

  engine.RunAll();

  EXPECT_THAT(sink->tokens, SizeIs(3));
  EXPECT_EQ(sink->finished->reason, FinishReason::kStop);
  EXPECT_FALSE(sink->finished->stop_token_id.has_value());
  EXPECT_TRUE(engine.all_blocks_are_free());
}

TEST(EngineCore, CallsAStopByTheSinkAtMaxTokensAStop) {
  DrivenEngine engine({});
  const auto sink = engine.Add(GreedyRequest(Prompt(5), 2));
  sink->on_token = [](const TokenEvent& event) {
    return event.completion_tokens == 2 ? Verdict::kStop : Verdict::kContinue;
  };

  engine.RunAll();

  EXPECT_EQ(sink->finished->reason, FinishReason::kStop);
}

TEST(EngineCore, EndsOnlyTheRequestWhoseLogitsAreNotFinite) {
  constexpr int32_t kPoison = 60;
  DrivenEngine healthy({});
  const auto expected = healthy.Add(GreedyRequest(Prompt(9), 12));
  healthy.RunAll();
  ASSERT_THAT(expected->tokens, Each(testing::Ne(kPoison)));
  DrivenEngine engine({.model = {.nan_token = kPoison}, .blocks = 8});
  const auto sink = engine.Add(GreedyRequest(Prompt(9), 12));
  const auto poisoned = engine.Add(GreedyRequest({5, kPoison, 7}, 4));

  engine.RunAll();

  EXPECT_EQ(poisoned->finished->reason, FinishReason::kError);
  EXPECT_EQ(poisoned->finished->status.code(), StatusCode::kInternal);
  EXPECT_THAT(MessageOf(poisoned->finished->status), HasSubstr("not finite"));
  EXPECT_THAT(poisoned->tokens, SizeIs(0));
  EXPECT_EQ(sink->tokens, expected->tokens);
  EXPECT_TRUE(engine.all_blocks_are_free());
  EXPECT_EQ(engine.core().Load().not_finite_total, 1);
}

TEST(EngineCore, EndsOnlyTheRequestThatForbidsEveryToken) {
  DrivenEngine engine({});
  GenerationRequest impossible = GreedyRequest(Prompt(5), 9);
  impossible.sampling.allowed_token_ids = {7, 8};
  impossible.sampling.no_repeat_ngram_tokens = 2;
  impossible.sampling.bad_words = {{8}};

  const auto sink = engine.Add(std::move(impossible));
  const auto neighbour = engine.Add(GreedyRequest(Prompt(9), 8));
  engine.RunAll();

  // 7 and 7 may come; a third would be the pair 7 7 for the second time.
  EXPECT_THAT(sink->tokens, ElementsAre(7, 7));
  ASSERT_TRUE(sink->finished.has_value());
  EXPECT_EQ(sink->finished->reason, FinishReason::kError);
  EXPECT_EQ(sink->finished->status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(
      MessageOf(sink->finished->status),
      HasSubstr("no token is left to choose after 2 tokens of the completion")
  );
  EXPECT_EQ(neighbour->tokens, GreedyTokens(Prompt(9), 8));
  EXPECT_TRUE(engine.all_blocks_are_free());
  EXPECT_EQ(engine.core().Load().not_finite_total, 0);
}

TEST(EngineCore, ReadsNothingFromABlockThatAPoisonedRequestHeld) {
  constexpr int32_t kPoison = 60;
  const std::vector<int32_t> expected = GreedyTokens(Prompt(9), 12);
  DrivenEngine engine({.model = {.nan_token = kPoison}, .blocks = 6});
  engine.Add(GreedyRequest(std::vector<int32_t>(20, kPoison), 4));
  engine.RunAll();

  const auto sink = engine.Add(GreedyRequest(Prompt(9), 12));
  engine.RunAll();

  EXPECT_EQ(sink->tokens, expected);
}

// A device that fails when the test says so.
class FaultyOps final : public ReferenceOps {
 public:
  Status Finish() override { return std::exchange(fault, OkStatus()); }

  Status fault;
};

TEST(EngineCore, EndsTheRequestsOfAStepThatTheDeviceFailedAndGoesOn) {
  auto owned_ops = std::make_unique<FaultyOps>();
  FaultyOps& ops = *owned_ops;
  DrivenEngine engine(
      {.limits = {.max_step_tokens = 16, .max_running = 2, .block_tokens = 4}}, std::move(owned_ops)
  );
  const auto first = engine.Add(GreedyRequest(Prompt(5), 8));
  const auto second = engine.Add(GreedyRequest(Prompt(6), 8));
  const auto waiting = engine.Add(GreedyRequest(Prompt(7), 8));
  engine.core().Step();

  ops.fault = Status(StatusCode::kUnknown, "the card fell out");
  engine.core().Step();

  for (const auto& sink : {first, second}) {
    ASSERT_TRUE(sink->finished.has_value());
    EXPECT_EQ(sink->finished->reason, FinishReason::kError);
    EXPECT_EQ(sink->finished->status.code(), StatusCode::kInternal);
    EXPECT_THAT(MessageOf(sink->finished->status), HasSubstr("the card fell out"));
    EXPECT_THAT(sink->tokens, SizeIs(1));
  }
  engine.RunAll();
  EXPECT_EQ(waiting->tokens, GreedyTokens(Prompt(7), 8));
  EXPECT_TRUE(engine.all_blocks_are_free());
}

TEST(EngineCore, WaitsForBlocksAndRunsInOrderOfArrival) {
  // 6 blocks of 4: each request needs 4, so they run one after the other.
  DrivenEngine engine({.blocks = 6});
  std::vector<std::shared_ptr<RecordingSink>> sinks;
  std::vector<size_t> order;
  for (size_t i = 0; i < 3; ++i) {
    sinks.push_back(engine.Add(GreedyRequest(Prompt(8 + i), static_cast<int32_t>(6 - i))));
    sinks.back()->on_finished = [&order, i] { order.push_back(i); };
  }

  engine.RunAll();

  EXPECT_THAT(order, ElementsAre(0, 1, 2));
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(sinks[i]->tokens, GreedyTokens(Prompt(8 + i), static_cast<int32_t>(6 - i)));
  }
}

TEST(EngineCore, RefusesARequestThatCouldNeverRun) {
  DrivenEngine engine({.blocks = 6});
  GenerationRequest request = GreedyRequest(Prompt(20), 5);
  request.sink = std::make_shared<RecordingSink>();

  const auto sequence = engine.core().Accept(RequestId{1}, std::move(request));

  EXPECT_EQ(sequence.status().code(), StatusCode::kInvalidArgument);
}

TEST(EngineCore, ReportsLogprobsOfTheChosenTokenAndOfTheLikeliest) {
  DrivenEngine engine({});
  GenerationRequest request = GreedyRequest(Prompt(5), 3);
  request.sampling.top_logprobs = 2;

  const auto sink = engine.Add(std::move(request));
  engine.RunAll();

  for (size_t i = 0; i < 3; ++i) {
    ASSERT_THAT(sink->tops[i], SizeIs(2));
    EXPECT_EQ(sink->tops[i][0].id, sink->tokens[i]);
    EXPECT_EQ(sink->tops[i][0].logprob, sink->logprobs[i]);
    EXPECT_LE(sink->tops[i][1].logprob, sink->tops[i][0].logprob);
    EXPECT_LT(sink->logprobs[i], 0);
  }
}

TEST(EngineCore, WarmsUpWithoutKeepingBlocks) {
  DrivenEngine engine({});

  EXPECT_TRUE(engine.core().WarmUp().ok());

  EXPECT_TRUE(engine.all_blocks_are_free());
}

TEST(EngineCore, FailsTheWarmUpOfADamagedModel) {
  DrivenEngine engine({.model = {.nan_token = 1}});  // the begin-of-sequence token

  const Status status = engine.core().WarmUp();

  EXPECT_EQ(status.code(), StatusCode::kInternal);
  EXPECT_THAT(MessageOf(status), HasSubstr("not finite"));
  EXPECT_TRUE(engine.all_blocks_are_free());
}

TEST(EngineCore, RefusesAKvCacheOfLessThanOneBlock) {
  const auto ops = *MakeOps({.device = "reference"});
  auto model = *LoadTinyModel(TinyFamily::kJetMoe, {}, *ops);
  EngineOptions options;
  options.kv_cache_bytes = options.limits.block_tokens * model->kv_layout().BytesPerToken() - 1;

  const auto core = EngineCore::Create(std::move(model), options, Clock::now);

  EXPECT_EQ(core.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(MessageOf(core.status()), HasSubstr("give at least that much"));
}

TEST(EngineCore, RefusesLimitsThatLetNothingRun) {
  const auto ops = *MakeOps({.device = "reference"});
  auto model = *LoadTinyModel(TinyFamily::kJetMoe, {}, *ops);
  EngineOptions options;
  options.limits.max_step_tokens = 0;

  const auto core = EngineCore::Create(std::move(model), options, Clock::now);

  EXPECT_EQ(core.status().code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace switchyard
