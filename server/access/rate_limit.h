#pragma once

#include <cstdint>
#include <optional>

#include "engine/request.h"

namespace switchyard {

// A bucket that holds what a minute brings, fills evenly and begins full: of a burst a minute's
// worth passes at once, and over any stretch of time as much again for each minute. Exact in whole
// numbers, on a clock that the caller reads; one that stands still or goes back brings nothing.
// Thread-compatible.
class RateLimit {
 public:
  static constexpr int64_t kMaxPerMinute = 100'000'000;

  // `per_minute` in 0..kMaxPerMinute; 0: no limit.
  RateLimit(int64_t per_minute, Clock::time_point now);

  struct Verdict {
    bool is_taken = false;
    // When not: after which time as many are there, if nobody takes any; absent when they never
    // are.
    std::optional<Clock::duration> retry_after = {};
  };
  // Takes all of the units, or none. Requires: units >= 0.
  Verdict Take(int64_t units, Clock::time_point now);
  // Gives back what was taken and not used.
  void Return(int64_t units, Clock::time_point now);

  int64_t per_minute() const { return per_minute_; }
  // Whole units that could be taken.
  int64_t Available(Clock::time_point now);

 private:
  void Fill(Clock::time_point now);
  int64_t Capacity() const;

  int64_t per_minute_;
  int64_t balance_;  // units times the nanoseconds of a minute
  Clock::time_point filled_at_;
};

}  // namespace switchyard
