#pragma once

#include <absl/functional/function_ref.h>

#include <chrono>
#include <cstddef>
#include <deque>

#include <map>
#include <memory>
#include <vector>

#include "engine/request.h"
#include "engine/sequence.h"

namespace switchyard {

// The requests that wait, in the order in which they are to be admitted: by falling priority, and
// within one first come, first served. Waiting raises a priority by one for every `ageing`, so that
// the lowest is not passed over for ever. Thread-compatible; takes the time from its caller.
class WaitingQueue {
 public:
  // 0: nothing ages.
  explicit WaitingQueue(std::chrono::milliseconds ageing) : ageing_(ageing) {}

  // To its place by arrival, so that a request that comes back after preemption stands where it
  // stood.
  void Push(std::unique_ptr<Sequence> sequence);

  // Calls `visit` on one after the other, in order, until it says false.
  void VisitInOrder(Clock::time_point now, absl::FunctionRef<bool(Sequence&)> visit);

  // Requires: it is in the queue.
  std::unique_ptr<Sequence> Take(RequestId id);

  // In no particular order.
  void ForEach(absl::FunctionRef<void(Sequence&)> visit) const;
  void RemoveFinished();

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

 private:
  using Level = std::deque<std::unique_ptr<Sequence>>;  // of one priority, by arrival
  // How far VisitInOrder has come in a level.
  struct Cursor {
    int32_t priority = 0;
    const Level* level = nullptr;
    size_t next = 0;
  };

  int64_t AgedPriority(const Cursor& cursor, Clock::time_point now) const;

  std::chrono::milliseconds ageing_;
  std::map<int32_t, Level> levels_;  // an empty one is removed
  size_t size_ = 0;
  std::vector<Cursor> cursors_;  // of VisitInOrder; kept for its memory
};

}  // namespace switchyard
