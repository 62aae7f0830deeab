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
  uint64_t arrival = 0;          // order of arrival; smaller is older
  int32_t known_tokens = 0;      // prompt + generated so far
  int32_t computed_tokens = 0;   // of those, in the KV cache; known - computed is 1 while decoding
  int32_t blocks_held = 0;       // of a waiting request: the cached ones that it will share
  int32_t max_total_tokens = 0;  // prompt + max_tokens
  int32_t slots = 1;             // places among the running ones that it takes
  // Whether the next token goes into a block that others read too, which is copied first.
  bool copies_block = false;
  // Running: blocks that nobody else reads, free once it is preempted. Waiting: those of
  // blocks_held that count as available until it takes them.
  int32_t returnable_blocks = 0;
};

struct SchedulerLimits {
  int32_t max_step_tokens = 512;
  // At once, and never more than max_step_tokens, so that each advances in every step.
  int32_t max_running = 64;
  int32_t block_tokens = 16;
  // A request is admitted only while blocks are free for so many further tokens of every running
  // one: whoever is admitted gets at least that far before the blocks can run out again.
  int32_t growth_tokens = 64;
};

struct SchedulerState {
  std::vector<ScheduledRequest> waiting = {};  // in the order of admission; its head is enough
  std::vector<ScheduledRequest> running = {};  // those to keep longest first
  int32_t available_blocks = 0;
};

// A run of tokens of one request that this step computes.
struct PlannedSlice {
  RequestId id = {};
  int32_t first_token = 0;  // = computed_tokens
  int32_t tokens = 0;
  int32_t new_blocks = 0;  // to allocate before the step, a copy's too
  bool samples = false;    // reaches the last known token, so a new token comes out
};

struct StepPlan {
  std::vector<PlannedSlice> slices;  // the oldest running request, the others, the admitted
  std::vector<RequestId> admitted;   // leave waiting for running, in this order
  std::vector<RequestId> preempted;  // give their blocks back and wait again
  std::string ToString() const;      // one line, for logs and tests
};

// Blocks that hold `tokens` tokens.
int32_t BlocksFor(int32_t tokens, int32_t block_tokens);

// Policy as a pure function of the state.
//
// Tokens: one for each running request past its prompt, then prompts in running order, cut into
// chunks so that a step never exceeds max_step_tokens.
//
// Blocks: the oldest running request comes first, then running order. One that lacks a block takes
// those of the last in running order, which is preempted; the last itself takes what is left. The
// oldest is never preempted, so it always advances, and in the end so does everybody.
//
// Admission: waiting requests in order, while slots, tokens of the step and blocks (see
// growth_tokens) are there. One that does not fit holds back those behind it, so that a long one is
// never overtaken for ever. None is admitted into a step that preempts.
class Scheduler {
 public:
  explicit Scheduler(const SchedulerLimits& limits) : limits_(limits) {}

  StepPlan Plan(const SchedulerState& state) const;
  // The same into a plan whose memory is reused. O(running + admitted).
  void Plan(const SchedulerState& state, StepPlan& plan) const;

  // With at least this many blocks available, no step of `running` requests preempts any.
  int64_t MostBlocksOfAStep(int64_t running) const;

  const SchedulerLimits& limits() const { return limits_; }

 private:
  // Counts down while a step is planned.
  struct Remaining {
    int32_t decode_tokens = 0;
    int32_t prompt_tokens = 0;
    int32_t blocks = 0;
    size_t running = 0;  // the head of state.running that has not been preempted
  };

  Remaining Shares(const SchedulerState& state) const;
  void PlanRunning(const SchedulerState& state, size_t oldest, Remaining& remaining, StepPlan& plan)
      const;
  // Preempts from the end, but neither `index` nor `oldest`, until `blocks` are there or nobody is
  // left.
  void MakeRoom(
      const SchedulerState& state,
      size_t index,
      size_t oldest,
      int32_t blocks,
      Remaining& remaining,
      StepPlan& plan
  ) const;
  void Admit(const SchedulerState& state, Remaining& remaining, StepPlan& plan) const;

  // Adds a slice of at most `tokens` tokens and as many as the blocks allow; returns how many.
  int32_t AddSlice(
      const ScheduledRequest& request, int32_t tokens, int32_t& available_blocks, StepPlan& plan
  ) const;
  int32_t NewBlocks(const ScheduledRequest& request, int32_t tokens) const;
  // Blocks that the request asks for until growth_tokens further tokens are there.
  int64_t Growth(const ScheduledRequest& request) const;

  SchedulerLimits limits_;
};

}  // namespace switchyard
