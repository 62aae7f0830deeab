#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/request.h"

namespace switchyard {

// What the scheduler knows of one request. Numbers only: no tensors, no clock, no threads, so that
// it can be simulated by the million.
struct ScheduledRequest {
  RequestId id = {};
  int32_t known_tokens = 0;     // prompt + generated so far
  int32_t computed_tokens = 0;  // of those, in the KV cache; known - computed is 1 while decoding
  int32_t blocks_held = 0;
  int32_t max_total_tokens = 0;  // prompt + max_tokens
};

struct SchedulerLimits {
  int32_t max_step_tokens = 512;
  // At once, and never more than max_step_tokens, so that each advances in every step.
  int32_t max_running = 64;
  int32_t block_tokens = 16;
};

struct SchedulerState {
  std::vector<ScheduledRequest> waiting = {};  // first come, first served; its head is enough
  std::vector<ScheduledRequest> running = {};  // oldest first
  int32_t available_blocks = 0;
};

// A run of tokens of one request that this step computes.
struct PlannedSlice {
  RequestId id = {};
  int32_t first_token = 0;  // = computed_tokens
  int32_t tokens = 0;
  int32_t new_blocks = 0;  // to allocate before the step
  bool samples = false;    // reaches the last known token, so a new token comes out
};

struct StepPlan {
  std::vector<PlannedSlice> slices;  // running order
  std::vector<RequestId> admitted;   // leave waiting for running, in this order
  std::vector<RequestId> preempted;  // give their blocks back and wait again
  std::string ToString() const;      // one line, for logs and tests
};

// Blocks that hold `tokens` tokens.
int32_t BlocksFor(int32_t tokens, int32_t block_tokens);

// Policy as a pure function of the state: decodes first (one token for each running request past
// its prompt), then prompts in order of arrival, cut into chunks so that a step never exceeds
// max_step_tokens; waiting requests are admitted in order while blocks for their whole length
// (prompt + max_tokens) are free, so that no running request ever lacks one. A request that does
// not fit holds back those behind it, so that a long one is never overtaken for ever. One is
// admitted only into a step that has tokens left for it.
class Scheduler {
 public:
  explicit Scheduler(const SchedulerLimits& limits) : limits_(limits) {}

  StepPlan Plan(const SchedulerState& state) const;
  // The same into a plan whose memory is reused. O(running + admitted).
  void Plan(const SchedulerState& state, StepPlan& plan) const;

  const SchedulerLimits& limits() const { return limits_; }

 private:
  // Counts down while a step is planned.
  struct Remaining {
    int32_t tokens = 0;
    int32_t blocks = 0;
  };
  void PlanRunning(const SchedulerState& state, Remaining& remaining, StepPlan& plan) const;
  void Admit(const SchedulerState& state, Remaining& remaining, StepPlan& plan) const;
  // Adds a slice of at most `tokens` tokens, unless its blocks are not there; returns how many it
  // took.
  int32_t AddSlice(
      const ScheduledRequest& request, int32_t tokens, int32_t& available_blocks, StepPlan& plan
  ) const;
  // Blocks that running requests may still ask for, beyond those they hold.
  int64_t ReservedBlocks(const std::vector<ScheduledRequest>& running) const;

  SchedulerLimits limits_;
};

}  // namespace switchyard
