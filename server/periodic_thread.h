#pragma once

#include <chrono>
#include <functional>
#include <thread>

#include "base/mutex.h"

namespace switchyard {

// A thread that runs a job again and again, with a pause between. Ends with this object.
class PeriodicThread {
 public:
  // Requires: `job` does not throw.
  PeriodicThread(std::chrono::milliseconds pause, std::function<void()> job);
  ~PeriodicThread();
  PeriodicThread(const PeriodicThread&) = delete;
  PeriodicThread& operator=(const PeriodicThread&) = delete;

 private:
  void Run();
  // False when the thread is to end.
  bool Pause();

  const std::chrono::milliseconds pause_;
  const std::function<void()> job_;
  Mutex mutex_;
  ConditionVariable changed_;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace switchyard
