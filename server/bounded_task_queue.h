#pragma once

#include <httplib.h>

#include <cstddef>
#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include "base/mutex.h"

namespace switchyard {

// The HTTP library's threads, with an end to what may wait for them: when so many connections wait,
// no other is accepted. The library's own queue takes any number, and with it the process's file
// descriptors, which gRPC needs too. Thread-safe.
class BoundedTaskQueue final : public httplib::TaskQueue {
 public:
  BoundedTaskQueue(size_t threads, size_t max_waiting);
  ~BoundedTaskQueue() override { shutdown(); }

  // Blocks while the queue is full.
  void enqueue(std::function<void()> task) override;
  // Runs what waits, then ends the threads.
  void shutdown() override;

 private:
  void Run();

  const size_t max_waiting_;
  Mutex mutex_;
  ConditionVariable changed_;
  std::deque<std::function<void()>> waiting_ ABSL_GUARDED_BY(mutex_);
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace switchyard
