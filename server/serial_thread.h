#pragma once

#include <deque>
#include <functional>
#include <thread>

#include "base/mutex.h"

namespace switchyard {

// A thread that runs what is posted to it, one after the other. Thread-safe.
class SerialThread {
 public:
  SerialThread();
  // Runs what was posted before, then ends the thread.
  ~SerialThread();
  SerialThread(const SerialThread&) = delete;
  SerialThread& operator=(const SerialThread&) = delete;

  // Never waits for what is running. Requires: `job` does not throw.
  void Post(std::function<void()> job);

 private:
  void Run();
  // Waits for the next job; empty when the thread is to end.
  std::function<void()> Next();

  Mutex mutex_;
  ConditionVariable changed_;
  std::deque<std::function<void()>> jobs_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace switchyard
