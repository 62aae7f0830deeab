#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <random>

#include "engine/scheduler.h"

namespace switchyard {
namespace {

// Plays requests through the scheduler as the engine would, and checks each plan against what must
// always hold.
class Simulation {
 public:
  Simulation(const SchedulerLimits& limits, int32_t total_blocks, uint64_t seed)
      : scheduler_(limits), total_blocks_(total_blocks), random_(seed) {
    state_.available_blocks = total_blocks;
  }

  void Arrive() {
    const int32_t most_tokens = total_blocks_ * limits().block_tokens;
    const int32_t prompt = Draw(1, std::max(1, std::min(60, most_tokens - 1)));
    const int32_t total = std::min(most_tokens, prompt + Draw(1, 40));
    state_.waiting.push_back(
        {.id = RequestId{++arrived_}, .known_tokens = prompt, .max_total_tokens = total}
    );
  }

  // Ends a random running request early, as a stop token or a cancellation does.
  void EndOne() {
    if (!state_.running.empty()) {
      const auto place = Draw(0, static_cast<int32_t>(state_.running.size()) - 1);
      End(state_.running.begin() + place);
    }
  }

  void Step() {
    const StepPlan plan = scheduler_.Plan(state_);
    SCOPED_TRACE(plan.ToString());
    Admit(plan);
    CheckBudget(plan);
    CheckProgress(plan);
    Apply(plan);
    EXPECT_GE(state_.available_blocks, 0);
    EndComplete();
  }

  bool idle() const { return state_.waiting.empty() && state_.running.empty(); }
  int32_t available_blocks() const { return state_.available_blocks; }
  uint64_t arrived() const { return arrived_; }
  int32_t Draw(int32_t least, int32_t most) {
    return std::uniform_int_distribution<int32_t>(least, most)(random_);
  }

 private:
  const SchedulerLimits& limits() const { return scheduler_.limits(); }

  // First come, first served: exactly the head of the queue.
  void Admit(const StepPlan& plan) {
    ASSERT_LE(plan.admitted.size(), state_.waiting.size());
    for (const RequestId id : plan.admitted) {
      ASSERT_EQ(id, state_.waiting.front().id);
      state_.running.push_back(state_.waiting.front());
      state_.waiting.erase(state_.waiting.begin());
    }
    EXPECT_LE(state_.running.size(), static_cast<size_t>(limits().max_running));
    EXPECT_TRUE(plan.preempted.empty());
  }

  void CheckBudget(const StepPlan& plan) {
    int32_t tokens = 0;
    int32_t new_blocks = 0;
    for (const PlannedSlice& slice : plan.slices) {
      EXPECT_GE(slice.tokens, 1);
      EXPECT_GE(slice.new_blocks, 0);
      tokens += slice.tokens;
      new_blocks += slice.new_blocks;
    }
    EXPECT_LE(tokens, limits().max_step_tokens);
    EXPECT_LE(new_blocks, state_.available_blocks);
    // Whatever the running requests may still ask for is there.
    int64_t reserved = 0;
    for (const ScheduledRequest& request : state_.running) {
      reserved += BlocksFor(request.max_total_tokens, limits().block_tokens) - request.blocks_held;
    }
    EXPECT_LE(reserved, state_.available_blocks);
  }

  // Every running request has a slice, in running order; a decode is never left out or cut.
  void CheckProgress(const StepPlan& plan) {
    ASSERT_EQ(plan.slices.size(), state_.running.size());
    for (size_t i = 0; i < plan.slices.size(); ++i) {
      const PlannedSlice& slice = plan.slices[i];
      const ScheduledRequest& request = state_.running[i];
      EXPECT_EQ(slice.id, request.id);
      EXPECT_EQ(slice.first_token, request.computed_tokens);
      EXPECT_LE(slice.first_token + slice.tokens, request.known_tokens);
      EXPECT_EQ(slice.samples, slice.first_token + slice.tokens == request.known_tokens);
      EXPECT_EQ(
          request.blocks_held + slice.new_blocks,
          BlocksFor(slice.first_token + slice.tokens, limits().block_tokens)
      );
    }
  }

  void Apply(const StepPlan& plan) {
    for (size_t i = 0; i < plan.slices.size(); ++i) {
      ScheduledRequest& request = state_.running[i];
      request.computed_tokens += plan.slices[i].tokens;
      request.blocks_held += plan.slices[i].new_blocks;
      request.known_tokens += plan.slices[i].samples ? 1 : 0;
      state_.available_blocks -= plan.slices[i].new_blocks;
    }
  }

  void EndComplete() {
    for (auto request = state_.running.begin(); request != state_.running.end();) {
      request = request->known_tokens >= request->max_total_tokens ? End(request) : request + 1;
    }
  }

  std::vector<ScheduledRequest>::iterator End(std::vector<ScheduledRequest>::iterator request) {
    state_.available_blocks += request->blocks_held;
    return state_.running.erase(request);
  }

  Scheduler scheduler_;
  int32_t total_blocks_;
  std::mt19937_64 random_;
  SchedulerState state_;
  uint64_t arrived_ = 0;
};

struct Scenario {
  SchedulerLimits limits;
  int32_t total_blocks = 0;
};

class SchedulerProperties : public ::testing::TestWithParam<Scenario> {};

TEST_P(SchedulerProperties, HoldOverRandomArrivalsAndEnds) {
  const Scenario& scenario = GetParam();
  Simulation simulation(scenario.limits, scenario.total_blocks, 7);

  while (simulation.arrived() < 10000 && !HasFailure()) {
    for (int32_t count = simulation.Draw(0, 3); count > 0; --count) {
      simulation.Arrive();
    }
    if (simulation.Draw(0, 9) == 0) {
      simulation.EndOne();
    }
    // Now and then the queue drains, so that both full and idle engines are seen.
    for (int32_t steps = simulation.Draw(1, simulation.Draw(1, 40)); steps > 0; --steps) {
      simulation.Step();
    }
  }
  while (!simulation.idle() && !HasFailure()) {
    simulation.Step();
  }

  EXPECT_EQ(simulation.available_blocks(), scenario.total_blocks);
}

INSTANTIATE_TEST_SUITE_P(
    Scenarios,
    SchedulerProperties,
    ::testing::Values(
        Scenario{{.max_step_tokens = 32, .max_running = 8, .block_tokens = 4}, 64},
        Scenario{{.max_step_tokens = 1, .max_running = 5, .block_tokens = 3}, 40},
        Scenario{{.max_step_tokens = 3, .max_running = 16, .block_tokens = 16}, 9},
        Scenario{{.max_step_tokens = 512, .max_running = 64, .block_tokens = 1}, 150},
        Scenario{{.max_step_tokens = 7, .max_running = 2, .block_tokens = 5}, 1}
    )
);

}  // namespace
}  // namespace switchyard
