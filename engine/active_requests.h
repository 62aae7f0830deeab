#pragma once

#include <absl/functional/function_ref.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/block_pool.h"
#include "engine/engine.h"
#include "engine/request.h"
#include "engine/scheduler.h"
#include "engine/sequence.h"
#include "engine/sequence_blocks.h"
#include "engine/step_work.h"
#include "engine/waiting_queue.h"

namespace switchyard {

// The requests that wait and run, with the blocks they hold: how each comes, moves and ends. No
// tensors, no threads, and the time comes from the caller, so that the whole of scheduling can be
// simulated. Used only by the engine thread, except Load. Tells a request's sink that it finished
// from inside the call that ends it.
class ActiveRequests {
 public:
  ActiveRequests(int32_t total_blocks, const EngineOptions& options);

  // To its place in the queue.
  void Add(std::unique_ptr<Sequence> sequence);

  // End requests in whatever state they are. An unknown id is ignored.
  void Cancel(RequestId id, Clock::time_point now);
  void CancelAll(Clock::time_point now);
  void ExpireDeadlines(Clock::time_point now);
  // Frees what the sequence holds and tells its sink; the sequence itself stays until
  // RemoveFinished.
  void Finish(Sequence& sequence, const FinishEvent& event);
  void RemoveFinished();

  // What `scheduler` needs to know for the next step; reuses the memory of `state`.
  void Describe(Clock::time_point now, const Scheduler& scheduler, SchedulerState& state);
  // Moves requests as planned, takes and gives blocks, and fills `work`, reusing its memory.
  // Requires: the plan was made from what Describe just said.
  void Apply(const StepPlan& plan, Clock::time_point now, StepWork& work);
  // The slice was computed: its keys and values are in the cache.
  void Computed(const SequenceSlice& slice);
  // A running sequence with the parent's tokens and blocks, as beam number `beam` of its search.
  Sequence& Fork(const Sequence& parent, int32_t beam);
  // Gives a beam the tokens and, if both are running, the blocks of another.
  void Reassign(Sequence& sequence, const Sequence& parent);
  // Frees what the sequence holds without telling the sink, which knows.
  void Drop(Sequence& sequence);
  // The followers no longer have to wait for the sequence.
  void ReleaseFollowers(Sequence& sequence);
  // What the cache holds for the sequence cannot be trusted; nobody finds it any more.
  void Quarantine(Sequence& sequence) { ForgetBlocks(pool_, sequence); }

  bool empty() const { return waiting_.empty() && running_.empty(); }
  std::optional<Clock::time_point> NearestDeadline() const;
  BlockPool& pool() { return pool_; }

  // Safe from any thread. A request is already counted out when its sink hears that it finished.
  EngineLoad Load() const;

 private:
  ScheduledRequest DescribeRunning(const Sequence& sequence, bool blocks_are_short) const;
  ScheduledRequest DescribeWaiting(Sequence& sequence);
  void Preempt(std::span<const RequestId> preempted);
  void Admit(std::span<const RequestId> admitted, Clock::time_point now);
  void ForEach(absl::FunctionRef<void(Sequence&)> visit) const;
  void ReleaseFollowersOfFinished();  // of those that wait
  void FinishWith(Sequence& sequence, FinishReason reason, Clock::time_point now);
  void PublishLoad();

  int32_t block_tokens_;
  size_t max_running_;
  BlockPool pool_;
  WaitingQueue waiting_;
  std::vector<std::unique_ptr<Sequence>> running_;  // by falling priority, then arrival
  uint64_t arrivals_ = 0;
  uint64_t forks_ = 0;
  int32_t followers_ = 0;         // not in waiting_ yet
  int32_t finished_waiting_ = 0;  // still in waiting_
  int32_t finished_running_ = 0;
  std::vector<BlockId> prefix_;  // scratch

  std::atomic<int32_t> published_running_ = 0;
  std::atomic<int32_t> published_waiting_ = 0;
  std::atomic<int32_t> published_available_blocks_ = 0;
  std::atomic<int32_t> published_cached_blocks_ = 0;
  std::atomic<int64_t> published_preempted_ = 0;
  std::atomic<int64_t> published_cached_prompt_tokens_ = 0;
};

}  // namespace switchyard
