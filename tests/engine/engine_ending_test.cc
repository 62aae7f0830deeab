#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "engine/engine_core.h"
#include "tests/engine/driven_engine.h"

// Requests that end from outside: cancelled or past their deadline, in every state.

namespace switchyard {
namespace {

using std::chrono::seconds;
using ::testing::SizeIs;

TEST(EngineCore, CancelsAWaitingRequest) {
  DrivenEngine engine({.limits = {.max_step_tokens = 16, .max_running = 1, .block_tokens = 4}});
  const auto running = engine.Add(GreedyRequest(Prompt(5), 4));
  const auto waiting = engine.Add(GreedyRequest(Prompt(5), 4));
  engine.core().Step();
  EXPECT_EQ(engine.core().Load().waiting_requests, 1);

  engine.core().Cancel(engine.last_id());

  EXPECT_EQ(engine.core().Load().waiting_requests, 0);
  EXPECT_EQ(waiting->finished->reason, FinishReason::kCancelled);
  EXPECT_THAT(waiting->tokens, SizeIs(0));
  engine.RunAll();
  EXPECT_THAT(running->tokens, SizeIs(4));
  EXPECT_TRUE(engine.all_blocks_are_free());
}

TEST(EngineCore, CancelsARequestInTheMiddleOfItsPrompt) {
  DrivenEngine engine({.limits = {.max_step_tokens = 6, .max_running = 2, .block_tokens = 4}});
  const auto sink = engine.Add(GreedyRequest(Prompt(20), 4));
  engine.core().Step();
  EXPECT_EQ(engine.core().Load().available_blocks, 64 - 2);

  engine.core().Cancel(engine.last_id());

  EXPECT_EQ(sink->finished->reason, FinishReason::kCancelled);
  EXPECT_EQ(sink->finished->completion_tokens, 0);
  EXPECT_FALSE(engine.core().HasWork());
  EXPECT_TRUE(engine.all_blocks_are_free());
}

TEST(EngineCore, CancelsADecodingRequestAndLeavesItsNeighbourAlone) {
  DrivenEngine engine({});
  const auto neighbour = engine.Add(GreedyRequest(Prompt(9), 8));
  const auto sink = engine.Add(GreedyRequest(Prompt(5), 8));
  engine.core().Step();
  engine.core().Step();
  engine.core().Step();

  engine.core().Cancel(engine.last_id());
  engine.RunAll();

  EXPECT_EQ(sink->finished->reason, FinishReason::kCancelled);
  EXPECT_EQ(sink->finished->completion_tokens, static_cast<int32_t>(sink->tokens.size()));
  EXPECT_EQ(neighbour->tokens, GreedyTokens(Prompt(9), 8));
  EXPECT_TRUE(engine.all_blocks_are_free());
}

TEST(EngineCore, IgnoresACancelOfAnUnknownOrFinishedRequest) {
  DrivenEngine engine({});
  const auto sink = engine.Add(GreedyRequest(Prompt(5), 2));
  engine.RunAll();

  engine.core().Cancel(engine.last_id());
  engine.core().Cancel(RequestId{99});

  EXPECT_EQ(sink->finished_calls, 1);
  EXPECT_EQ(sink->finished->reason, FinishReason::kLength);
}

TEST(EngineCore, CountsARequestOutBeforeItsSinkHearsOfTheEnd) {
  DrivenEngine engine({});
  const auto sink = engine.Add(GreedyRequest(Prompt(5), 2));
  EngineLoad load;
  sink->on_finished = [&] { load = engine.core().Load(); };

  engine.RunAll();

  EXPECT_EQ(load.running_requests, 0);
  EXPECT_EQ(load.available_blocks, load.total_blocks);
}

TEST(EngineCore, EndsAWaitingRequestAtItsDeadline) {
  DrivenEngine engine({.limits = {.max_step_tokens = 16, .max_running = 1, .block_tokens = 4}});
  engine.Add(GreedyRequest(Prompt(5), 8));
  GenerationRequest request = GreedyRequest(Prompt(5), 8);
  request.deadline = engine.now + seconds(5);
  const auto sink = engine.Add(std::move(request));
  EXPECT_EQ(engine.core().NearestDeadline(), engine.now + seconds(5));
  engine.core().Step();
  EXPECT_FALSE(sink->finished.has_value());

  engine.now += seconds(5);
  engine.core().Step();

  ASSERT_TRUE(sink->finished.has_value());
  EXPECT_EQ(sink->finished->reason, FinishReason::kDeadline);
  EXPECT_DOUBLE_EQ(sink->finished->queue_seconds, 5);
  EXPECT_FALSE(engine.core().NearestDeadline().has_value());
  engine.RunAll();
  EXPECT_TRUE(engine.all_blocks_are_free());
}

TEST(EngineCore, EndsARunningRequestAtItsDeadline) {
  DrivenEngine engine({});
  GenerationRequest request = GreedyRequest(Prompt(5), 8);
  request.deadline = engine.now + seconds(5);
  const auto sink = engine.Add(std::move(request));
  engine.core().Step();
  engine.core().Step();

  engine.now += seconds(6);
  EXPECT_FALSE(engine.core().Step());

  EXPECT_EQ(sink->finished->reason, FinishReason::kDeadline);
  EXPECT_EQ(sink->finished->completion_tokens, 2);
  EXPECT_TRUE(engine.all_blocks_are_free());
}

TEST(EngineCore, TimesTheQueueTheFirstTokenAndTheDecode) {
  DrivenEngine engine({.limits = {.max_step_tokens = 16, .max_running = 1, .block_tokens = 4}});
  engine.Add(GreedyRequest({9, 9, 9, 9, 9}, 1));
  const auto sink = engine.Add(GreedyRequest(Prompt(20), 3));

  // The first ends in step 1; the second takes two steps for its prompt and two more for its other
  // tokens.
  for (int step = 0; step < 5; ++step) {
    engine.core().Step();
    engine.now += seconds(1);
  }

  ASSERT_TRUE(sink->finished.has_value());
  EXPECT_DOUBLE_EQ(sink->finished->queue_seconds, 1);
  EXPECT_DOUBLE_EQ(sink->finished->time_to_first_token_seconds, 2);
  EXPECT_DOUBLE_EQ(sink->finished->decode_seconds, 2);
  EXPECT_DOUBLE_EQ(sink->finished->total_seconds, 4);
}

}  // namespace
}  // namespace switchyard
