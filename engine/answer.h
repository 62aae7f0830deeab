#pragma once

#include <chrono>
#include <optional>
#include <utility>

#include "base/mutex.h"

namespace switchyard {

// What one thread asks for and another gives, once. Shared by both, so that the asking one may stop
// waiting. Thread-safe.
template <typename Value>
class Answer {
 public:
  void Give(Value value) {
    const MutexLock lock(mutex_);
    value_ = std::move(value);
    given_.NotifyAll();
  }

  // Nothing when the answer is not there by then. Takes the value: ask once.
  std::optional<Value> WaitUntil(std::chrono::steady_clock::time_point deadline) {
    const MutexLock lock(mutex_);
    while (!value_.has_value() && given_.WaitUntil(mutex_, deadline)) {
    }
    return std::exchange(value_, std::nullopt);
  }

 private:
  Mutex mutex_;
  ConditionVariable given_;
  std::optional<Value> value_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace switchyard
