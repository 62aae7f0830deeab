#pragma once

#include <atomic>
#include <chrono>

#include "engine/request.h"

namespace switchyard {

// A clock that stands still until it is told. Thread-safe.
class HandClock {
 public:
  Clock::time_point Now() const { return Clock::time_point(std::chrono::milliseconds(now_ms_)); }
  void Advance(std::chrono::milliseconds time) { now_ms_ += time.count(); }

 private:
  std::atomic<int64_t> now_ms_ = 1'000'000;
};

}  // namespace switchyard
