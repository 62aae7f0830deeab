#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "engine/engine.h"
#include "kernels/backend.h"
#include "tests/engine/driven_engine.h"
#include "tests/engine/recording_sink.h"

namespace switchyard {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using ::testing::HasSubstr;
using ::testing::SizeIs;

// Holds the engine thread inside a sink until the test lets it go.
class Gate {
 public:
  void Enter() {
    const MutexLock lock(mutex_);
    is_entered_ = true;
    changed_.NotifyAll();
    while (!is_open_) {
      changed_.Wait(mutex_);
    }
  }
  void WaitUntilEntered() {
    const MutexLock lock(mutex_);
    while (!is_entered_) {
      changed_.Wait(mutex_);
    }
  }
  void Open() {
    const MutexLock lock(mutex_);
    is_open_ = true;
    changed_.NotifyAll();
  }

 private:
  Mutex mutex_;
  ConditionVariable changed_;
  bool is_entered_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_open_ ABSL_GUARDED_BY(mutex_) = false;
};

class ThreadedEngineTest : public ::testing::Test {
 protected:
  void Start(EngineOptions options = {}) {
    auto model = *LoadTinyModel(TinyFamily::kJetMoe, {}, *ops_);
    const int32_t max_queued = options.max_queued_requests;
    options = OptionsWithBlocks(
        model->kv_layout(), {.max_step_tokens = 16, .max_running = 4, .block_tokens = 4}, 64
    );
    options.max_queued_requests = max_queued;
    engine_ = *Engine::Create(std::move(model), options);
  }

  // A request whose first token holds the engine thread until `gate` opens.
  std::shared_ptr<RecordingSink> SubmitHeld(Gate& gate, int32_t max_tokens) {
    auto sink = std::make_shared<RecordingSink>();
    sink->on_token = [&gate](const TokenEvent& event) {
      if (event.completion_tokens == 1) {
        gate.Enter();
      }
      return Verdict::kContinue;
    };
    EXPECT_TRUE(Submit({3, 1, 4}, max_tokens, sink).ok());
    gate.WaitUntilEntered();
    return sink;
  }

  StatusOr<RequestId> Submit(
      std::vector<int32_t> prompt, int32_t max_tokens, std::shared_ptr<RecordingSink> sink
  ) {
    GenerationRequest request = GreedyRequest(std::move(prompt), max_tokens);
    request.sink = std::move(sink);
    return engine_->Submit(std::move(request));
  }

  void ExpectNothingIsHeld() {
    const EngineLoad load = engine_->Load();
    EXPECT_EQ(load.available_blocks, load.total_blocks);
    EXPECT_EQ(load.running_requests, 0);
    EXPECT_EQ(load.waiting_requests, 0);
  }

  std::unique_ptr<Ops> ops_ = *MakeOps({.device = "reference"});
  std::unique_ptr<Engine> engine_;
};

TEST_F(ThreadedEngineTest, FinishesWhatIsSubmitted) {
  Start();
  const auto sink = std::make_shared<RecordingSink>();

  ASSERT_TRUE(engine_->WarmUp().ok());
  ASSERT_TRUE(Submit({3, 1, 4}, 5, sink).ok());
  sink->WaitUntilFinished();

  EXPECT_THAT(sink->tokens, SizeIs(5));
  EXPECT_EQ(sink->finished->reason, FinishReason::kLength);
  EXPECT_GE(sink->finished->total_seconds, sink->finished->time_to_first_token_seconds);
  ExpectNothingIsHeld();
}

TEST_F(ThreadedEngineTest, RefusesMoreRequestsThanTheQueueHolds) {
  EngineOptions options;
  options.max_queued_requests = 2;
  Start(options);
  Gate gate;
  const auto held = SubmitHeld(gate, 3);
  const auto first = std::make_shared<RecordingSink>();
  const auto second = std::make_shared<RecordingSink>();
  const auto third = std::make_shared<RecordingSink>();

  EXPECT_TRUE(Submit({1}, 2, first).ok());
  EXPECT_TRUE(Submit({2}, 2, second).ok());
  const auto refused = Submit({3}, 2, third);

  EXPECT_EQ(refused.status().code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(MessageOf(refused.status()), HasSubstr("2 requests are waiting; the queue holds 2"));
  EXPECT_EQ(engine_->Load().waiting_requests, 2);
  EXPECT_EQ(engine_->Load().running_requests, 1);
  gate.Open();
  first->WaitUntilFinished();
  second->WaitUntilFinished();
  held->WaitUntilFinished();
  EXPECT_FALSE(third->finished.has_value());
  ExpectNothingIsHeld();
}

TEST_F(ThreadedEngineTest, RefusesARequestThatCouldNeverRun) {
  Start();
  const auto sink = std::make_shared<RecordingSink>();

  EXPECT_EQ(Submit({61}, 2, sink).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(Submit({}, 2, sink).status().code(), StatusCode::kInvalidArgument);
}

TEST_F(ThreadedEngineTest, CancelsARunningRequest) {
  Start();
  Gate gate;
  const auto sink = SubmitHeld(gate, 90);

  engine_->Cancel(RequestId{1});
  gate.Open();
  sink->WaitUntilFinished();

  EXPECT_EQ(sink->finished->reason, FinishReason::kCancelled);
  EXPECT_THAT(sink->tokens, SizeIs(1));
  ExpectNothingIsHeld();
}

TEST_F(ThreadedEngineTest, CancelsARequestThatItHasNotSeenYet) {
  Start();
  Gate gate;
  const auto held = SubmitHeld(gate, 2);
  const auto sink = std::make_shared<RecordingSink>();

  const auto id = Submit({1, 2}, 90, sink);
  engine_->Cancel(*id);
  gate.Open();
  sink->WaitUntilFinished();

  EXPECT_EQ(sink->finished->reason, FinishReason::kCancelled);
  EXPECT_THAT(sink->tokens, SizeIs(0));
}

TEST_F(ThreadedEngineTest, EndsARequestThatComesTooLate) {
  Start();
  const auto sink = std::make_shared<RecordingSink>();
  GenerationRequest request = GreedyRequest({1, 2}, 5);
  request.deadline = Clock::now() - milliseconds(1);
  request.sink = sink;

  ASSERT_TRUE(engine_->Submit(std::move(request)).ok());
  sink->WaitUntilFinished();

  EXPECT_EQ(sink->finished->reason, FinishReason::kDeadline);
}

TEST_F(ThreadedEngineTest, FinishesEverythingBeforeItStops) {
  Start();
  std::vector<std::shared_ptr<RecordingSink>> sinks;
  for (int32_t i = 0; i < 10; ++i) {
    sinks.push_back(std::make_shared<RecordingSink>());
    ASSERT_TRUE(Submit({i, 5, 9}, 8 + i, sinks.back()).ok());
  }

  engine_->Stop(Clock::now() + hours(1));

  for (int32_t i = 0; i < 10; ++i) {
    ASSERT_TRUE(sinks[static_cast<size_t>(i)]->finished.has_value());
    EXPECT_EQ(sinks[static_cast<size_t>(i)]->finished->reason, FinishReason::kLength);
    EXPECT_THAT(sinks[static_cast<size_t>(i)]->tokens, SizeIs(8 + i));
  }
  ExpectNothingIsHeld();
}

TEST_F(ThreadedEngineTest, TakesNothingOnceItStops) {
  Start();
  const auto sink = std::make_shared<RecordingSink>();

  engine_->Stop(Clock::now() + hours(1));

  EXPECT_EQ(Submit({1}, 2, sink).status().code(), StatusCode::kUnavailable);
  EXPECT_EQ(
      engine_->SnapshotExpertStatistics(milliseconds(10)).status().code(), StatusCode::kUnavailable
  );
  EXPECT_EQ(engine_->WarmUp().code(), StatusCode::kUnavailable);
  engine_->Cancel(RequestId{1});
}

TEST_F(ThreadedEngineTest, CancelsWhatIsLeftWhenTheStopDeadlineIsOver) {
  Start();
  Gate gate;
  const auto running = SubmitHeld(gate, 90);
  const auto waiting = std::make_shared<RecordingSink>();
  ASSERT_TRUE(Submit({1, 2}, 90, waiting).ok());

  std::thread stopping([this] { engine_->Stop(Clock::now()); });
  // The engine thread is held in a sink, so nothing is decided before the gate opens. Submit is
  // refused once Stop has begun.
  while (Submit({1}, 1, std::make_shared<RecordingSink>()).status().code() !=
         StatusCode::kUnavailable) {
    std::this_thread::yield();
  }
  gate.Open();
  stopping.join();

  EXPECT_EQ(running->finished->reason, FinishReason::kCancelled);
  EXPECT_EQ(waiting->finished->reason, FinishReason::kCancelled);
  ExpectNothingIsHeld();
}

TEST_F(ThreadedEngineTest, CancelsWhatIsLeftWhenItIsDestroyed) {
  Start();
  Gate gate;
  const auto sink = SubmitHeld(gate, 90);
  gate.Open();

  engine_.reset();

  ASSERT_TRUE(sink->finished.has_value());
  EXPECT_EQ(sink->finished_calls, 1);
}

TEST_F(ThreadedEngineTest, CopiesTheCountersBetweenSteps) {
  Start();
  const auto sink = std::make_shared<RecordingSink>();
  ASSERT_TRUE(Submit({3, 1, 4}, 5, sink).ok());
  sink->WaitUntilFinished();

  const auto statistics = engine_->SnapshotExpertStatistics(hours(1));

  ASSERT_TRUE(statistics.ok());
  EXPECT_THAT(statistics->routers, SizeIs(4));
  EXPECT_GT(statistics->uptime_seconds, 0);
}

TEST_F(ThreadedEngineTest, GivesUpOnTheCountersWhenAStepTakesTooLong) {
  Start();
  Gate gate;
  const auto sink = SubmitHeld(gate, 2);

  const auto statistics = engine_->SnapshotExpertStatistics(milliseconds(1));

  EXPECT_EQ(statistics.status().code(), StatusCode::kDeadlineExceeded);
  gate.Open();
  sink->WaitUntilFinished();
}

TEST_F(ThreadedEngineTest, StandsStillWhileAStepLastsAndMovesWithItsEnd) {
  Start();
  Gate gate;
  const auto sink = SubmitHeld(gate, 5);
  const int64_t within_first = engine_->Load().heartbeats;
  const int64_t still_within = engine_->Load().heartbeats;
  gate.Open();
  sink->WaitUntilFinished();

  EXPECT_EQ(still_within, within_first);
  // The first four steps are over when the fifth gives the last token.
  EXPECT_GE(engine_->Load().heartbeats, within_first + 4);
}

TEST_F(ThreadedEngineTest, FreesEverythingUnderRandomCancelsFromManyThreads) {
  Start();
  constexpr int kThreads = 4;
  std::vector<std::shared_ptr<RecordingSink>> sinks[kThreads];
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([this, t, &sinks] {
      std::mt19937_64 random(static_cast<uint64_t>(t));
      for (int i = 0; i < 40; ++i) {
        const auto sink = std::make_shared<RecordingSink>();
        const std::vector<int32_t> prompt(1 + random() % 30, static_cast<int32_t>(random() % 61));
        const auto id = Submit(prompt, 1 + static_cast<int32_t>(random() % 40), sink);
        if (!id.ok()) {
          continue;
        }
        sinks[t].push_back(sink);
        if (random() % 2 == 0) {
          std::this_thread::yield();
          engine_->Cancel(*id);
        }
        if (random() % 8 == 0) {
          EXPECT_TRUE(engine_->SnapshotExpertStatistics(hours(1)).ok());
        }
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }

  for (const auto& of_thread : sinks) {
    for (const auto& sink : of_thread) {
      sink->WaitUntilFinished();
      EXPECT_EQ(sink->finished_calls, 1);
    }
  }
  ExpectNothingIsHeld();
}

}  // namespace
}  // namespace switchyard
