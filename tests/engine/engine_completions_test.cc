#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "tests/engine/completions_sink.h"
#include "tests/engine/driven_engine.h"

namespace switchyard {
namespace {

using ::testing::Each;
using ::testing::IsEmpty;
using ::testing::SizeIs;

GenerationRequest Sampled(std::vector<int32_t> prompt, uint64_t seed, int32_t max_tokens = 9) {
  GenerationRequest request = GreedyRequest(std::move(prompt), max_tokens);
  request.sampling.temperature = 1.2F;
  request.sampling.seed = seed;
  request.sampling.top_logprobs = 0;
  return request;
}

std::shared_ptr<CompletionsSink> AddTo(DrivenEngine& engine, GenerationRequest request) {
  auto sink = std::make_shared<CompletionsSink>();
  request.sink = sink;
  engine.AddAsItIs(std::move(request));
  return sink;
}

TEST(Completions, EqualRequestsOfTheirOwnWithTheNextSeeds) {
  DrivenEngine engine({});
  GenerationRequest request = Sampled(Prompt(14), 100);
  request.completions = 3;

  const auto sink = AddTo(engine, std::move(request));
  engine.RunAll();

  ASSERT_THAT(sink->completions, SizeIs(3));
  for (const auto& [index, completion] : sink->completions) {
    DrivenEngine alone({});
    const auto single = alone.Add(Sampled(Prompt(14), 100 + static_cast<uint64_t>(index)));
    alone.RunAll();
    EXPECT_EQ(completion.tokens, single->tokens) << "completion " << index;
    EXPECT_EQ(completion.logprobs, single->logprobs) << "completion " << index;
    EXPECT_EQ(completion.finished_calls, 1);
  }
  EXPECT_NE(sink->completions[0].tokens, sink->completions[1].tokens);
  EXPECT_TRUE(engine.all_blocks_are_free());
}

TEST(Completions, ComputeTheirPromptOnce) {
  DrivenEngine engine({});
  GenerationRequest request = Sampled(Prompt(14), 100);
  request.completions = 3;

  const auto sink = AddTo(engine, std::move(request));
  engine.RunAll();

  EXPECT_EQ(sink->completions[0].finished->cached_prompt_tokens, 0);
  EXPECT_EQ(sink->completions[1].finished->cached_prompt_tokens, 12);
  EXPECT_EQ(sink->completions[2].finished->cached_prompt_tokens, 12);
}

TEST(Completions, WaitInTheQueueAndAreCountedThere) {
  DrivenEngine engine({.limits = {.max_step_tokens = 4, .max_running = 8, .block_tokens = 4}});
  GenerationRequest request = Sampled(Prompt(14), 100);
  request.completions = 5;
  AddTo(engine, std::move(request));
  EXPECT_EQ(engine.core().Load().waiting_requests, 5);

  engine.core().Step();

  EXPECT_EQ(engine.core().Load().running_requests, 1);
  EXPECT_EQ(engine.core().Load().waiting_requests, 4);
}

TEST(Completions, AreCancelledTogetherWhereverTheyAre) {
  for (const int steps : {0, 1, 3, 5, 6}) {
    DrivenEngine engine({.limits = {.max_step_tokens = 4, .max_running = 2, .block_tokens = 4}});
    GenerationRequest request = Sampled(Prompt(14), 100);
    request.completions = 4;
    const auto sink = AddTo(engine, std::move(request));
    for (int step = 0; step < steps; ++step) {
      engine.core().Step();
    }

    engine.core().Cancel(engine.last_id());

    ASSERT_THAT(sink->completions, SizeIs(4)) << "after " << steps << " steps";
    for (const auto& [index, completion] : sink->completions) {
      EXPECT_EQ(completion.finished_calls, 1);
      EXPECT_EQ(completion.finished->reason, FinishReason::kCancelled);
    }
    EXPECT_FALSE(engine.core().HasWork());
    EXPECT_EQ(engine.core().Load().waiting_requests, 0);
    EXPECT_TRUE(engine.all_blocks_are_free());
  }
}

TEST(Completions, EndAtTheDeadlineTogether) {
  DrivenEngine engine({.limits = {.max_step_tokens = 4, .max_running = 2, .block_tokens = 4}});
  GenerationRequest request = Sampled(Prompt(14), 100);
  request.completions = 4;
  request.deadline = engine.now + std::chrono::seconds(1);
  const auto sink = AddTo(engine, std::move(request));
  engine.core().Step();

  engine.now += std::chrono::seconds(2);
  engine.core().Step();

  ASSERT_THAT(sink->completions, SizeIs(4));
  EXPECT_EQ(sink->completions[3].finished->reason, FinishReason::kDeadline);
  EXPECT_FALSE(engine.core().HasWork());
}

// The same tokens, once generated and once given, whatever the chunks.
class Scoring : public ::testing::TestWithParam<int32_t> {
 protected:
  static DrivenEngine::Settings Settings() {
    return {
        .limits = {.max_step_tokens = GetParam(), .max_running = 3, .block_tokens = 4},
        .device = "cpu"};
  }
};

TEST_P(Scoring, GivesTheLogprobsThatGeneratingGave) {
  DrivenEngine engine(Settings());
  const auto generated = engine.Add(Sampled(Prompt(14), 3));
  engine.RunAll();
  GenerationRequest request = GreedyRequest(Prompt(14), 1);
  request.continuations = {generated->tokens};
  request.scoring = ScoringParameters{.first_token = 14};

  const auto sink = AddTo(engine, std::move(request));
  engine.RunAll();

  EXPECT_EQ(sink->completions[0].prompt_tokens, generated->tokens);
  EXPECT_EQ(sink->completions[0].prompt_logprobs, generated->logprobs);
  EXPECT_THAT(sink->completions[0].tokens, IsEmpty());
  EXPECT_EQ(sink->completions[0].finished->reason, FinishReason::kScored);
  EXPECT_TRUE(engine.all_blocks_are_free());
}

TEST_P(Scoring, SharesThePromptAmongContinuations) {
  DrivenEngine engine(Settings());
  GenerationRequest request = GreedyRequest(Prompt(14), 1);
  request.continuations = {{1}, {2, 3}, {1, 2, 3, 4, 5}};
  request.scoring = ScoringParameters{.first_token = 14, .top_logprobs = 1};

  const auto sink = AddTo(engine, std::move(request));
  engine.RunAll();

  ASSERT_THAT(sink->completions, SizeIs(3));
  EXPECT_THAT(sink->completions[0].prompt_logprobs, SizeIs(1));
  EXPECT_THAT(sink->completions[1].prompt_logprobs, SizeIs(2));
  EXPECT_THAT(sink->completions[2].prompt_logprobs, SizeIs(5));
  EXPECT_EQ(sink->completions[2].prompt_logprobs[0], sink->completions[0].prompt_logprobs[0]);
  EXPECT_THAT(sink->completions[2].prompt_tops, Each(SizeIs(1)));
  EXPECT_EQ(sink->completions[0].finished->cached_prompt_tokens, 0);
  EXPECT_EQ(sink->completions[1].finished->cached_prompt_tokens, 12);
}

TEST_P(Scoring, ScoresAWholePromptOnceAndGenerates) {
  DrivenEngine engine(Settings());
  const auto plain = engine.Add(Sampled(Prompt(14), 5));
  engine.RunAll();
  GenerationRequest request = Sampled(Prompt(14), 5);
  request.completions = 2;
  request.scoring = ScoringParameters{.top_logprobs = 2};

  const auto sink = AddTo(engine, std::move(request));
  engine.RunAll();

  const std::vector<int32_t> prompt = Prompt(14);
  EXPECT_EQ(
      sink->completions[0].prompt_tokens, std::vector<int32_t>(prompt.begin() + 1, prompt.end())
  );
  EXPECT_THAT(sink->completions[0].prompt_tops, Each(SizeIs(2)));
  EXPECT_EQ(sink->completions[0].tokens, plain->tokens);
  EXPECT_THAT(sink->completions[1].prompt_tokens, IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Chunks, Scoring, ::testing::Values(1, 3, 5, 512));

TEST(ScoringUnderPressure, TellsEachTokenOnce) {
  DrivenEngine engine(
      {.limits = {.max_step_tokens = 6, .max_running = 4, .block_tokens = 4, .growth_tokens = 0},
       .blocks = 9}
  );
  DrivenEngine roomy({});
  std::vector<std::shared_ptr<CompletionsSink>> sinks;
  for (int32_t first = 0; first < 3; ++first) {
    GenerationRequest request = Sampled(Prompt(13), 7, 12);
    request.prompt[0] = first;
    request.scoring = ScoringParameters{};
    sinks.push_back(AddTo(engine, request));
    const auto expected = AddTo(roomy, std::move(request));
    engine.core().Step();
    roomy.RunAll();
    sinks.push_back(expected);
  }
  engine.RunAll();

  EXPECT_GT(engine.core().Load().preempted_total, 0);
  for (size_t i = 0; i < sinks.size(); i += 2) {
    EXPECT_EQ(
        sinks[i]->completions[0].prompt_logprobs, sinks[i + 1]->completions[0].prompt_logprobs
    );
    EXPECT_EQ(sinks[i]->completions[0].logprobs, sinks[i + 1]->completions[0].logprobs);
  }
}

}  // namespace
}  // namespace switchyard
