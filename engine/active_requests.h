#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/block_pool.h"
#include "engine/engine.h"
#include "engine/request.h"
#include "engine/scheduler.h"
#include "engine/sequence.h"

namespace switchyard {

// The requests that wait and run, with the blocks they hold: how each comes, moves and ends. Used
// only by the engine thread, except Load. Tells a request's sink that it finished from inside the
// call that ends it.
class ActiveRequests {
 public:
  ActiveRequests(int32_t total_blocks, int32_t max_running);

  // At the end of the queue.
  void Add(std::unique_ptr<Sequence> sequence);

  // End requests in whatever state they are. An unknown id is ignored.
  void Cancel(RequestId id, Clock::time_point now);
  void CancelAll(Clock::time_point now);
  void ExpireDeadlines(Clock::time_point now);
  // Frees what the sequence holds and tells its sink; the sequence itself stays until
  // RemoveFinished.
  void Finish(Sequence& sequence, const FinishEvent& event);
  void RemoveFinished();

  // What the scheduler needs to know; reuses the memory of `state`.
  void Describe(SchedulerState& state) const;
  // Moves the planned requests from waiting to running, allocates blocks, and fills `slices`,
  // reusing its memory.
  void Apply(const StepPlan& plan, Clock::time_point now, std::vector<SequenceSlice>& slices);

  bool empty() const { return waiting_.empty() && running_.empty(); }
  std::optional<Clock::time_point> NearestDeadline() const;
  BlockPool& pool() { return pool_; }

  // Safe from any thread. A request is already counted out when its sink hears that it finished.
  EngineLoad Load() const;

 private:
  void Admit(std::span<const RequestId> admitted, Clock::time_point now);
  void FinishWith(Sequence& sequence, FinishReason reason, Clock::time_point now);
  void PublishLoad();

  size_t max_running_;
  BlockPool pool_;
  std::deque<std::unique_ptr<Sequence>> waiting_;   // first come, first served
  std::vector<std::unique_ptr<Sequence>> running_;  // oldest first
  int32_t finished_waiting_ = 0;                    // still in waiting_
  int32_t finished_running_ = 0;

  std::atomic<int32_t> published_running_ = 0;
  std::atomic<int32_t> published_waiting_ = 0;
  std::atomic<int32_t> published_available_blocks_ = 0;
};

}  // namespace switchyard
