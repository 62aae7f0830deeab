#pragma once

#include <cstdint>
#include <optional>

#include "base/mutex.h"
#include "engine/request.h"

namespace switchyard {

// Keeps clients from filling a disk with what they provoke: so many events a second are logged, and
// of the rest the number. Thread-safe.
class LogLimiter {
 public:
  explicit LogLimiter(int32_t events_per_second) : events_per_second_(events_per_second) {}

  // Whether this event is logged: absent when not, else how many were left out since the last one.
  std::optional<int64_t> Admit(Clock::time_point now);

 private:
  const int32_t events_per_second_;
  Mutex mutex_;
  std::optional<Clock::time_point> second_began_ ABSL_GUARDED_BY(mutex_);
  int32_t logged_ ABSL_GUARDED_BY(mutex_) = 0;  // in this second
  int64_t left_out_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace switchyard
