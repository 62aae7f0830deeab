#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <utility>

#include "base/mutex.h"
#include "base/status.h"
#include "engine/request.h"

namespace switchyard {

// How many prompt tokens were accepted and have not brought a token of their completion, and how
// fast they go. Thread-safe.
class PromptQueue {
 public:
  using Now = std::function<Clock::time_point()>;

  // A prompt's place; gives it back when destroyed or released. Thread-compatible.
  class Place {
   public:
    Place() = default;
    Place(PromptQueue& queue, int64_t tokens) : queue_(&queue), tokens_(tokens) {}
    Place(Place&& other) noexcept
        : queue_(std::exchange(other.queue_, nullptr)), tokens_(other.tokens_) {}
    Place& operator=(Place&& other) noexcept;
    ~Place() { Release(); }

    void Release();

   private:
    PromptQueue* queue_ = nullptr;  // null when there is nothing to give back
    int64_t tokens_ = 0;
  };

  PromptQueue(int64_t max_tokens, Now now) : max_tokens_(max_tokens), now_(std::move(now)) {}

  // RESOURCE_EXHAUSTED when `tokens` more would be too many; an empty queue takes any number. The
  // queue must outlive the place.
  StatusOr<Place> Enter(int64_t tokens);
  // The same before the number is known: whether there is room for one.
  Status CheckRoom() const;

  int64_t Tokens() const;

  // When one that was refused may come again: the time in which half of what is here goes, at the
  // pace of the latest 64 that went. Within 100 ms and 60 s; 1 s as long as none has gone.
  std::chrono::milliseconds RetryDelay() const;

 private:
  struct Departure {
    Clock::time_point time;
    int64_t tokens = 0;
  };

  Status CheckRoomFor(int64_t tokens) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Leave(int64_t tokens);

  const int64_t max_tokens_;
  const Now now_;

  mutable Mutex mutex_;
  int64_t tokens_ ABSL_GUARDED_BY(mutex_) = 0;
  // The latest departures, and since when they are counted: at most since the queue was last empty,
  // because the pace of an idle server says nothing.
  std::deque<Departure> departures_ ABSL_GUARDED_BY(mutex_);
  int64_t departed_tokens_ ABSL_GUARDED_BY(mutex_) = 0;  // the sum over departures_
  Clock::time_point counted_since_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace switchyard
