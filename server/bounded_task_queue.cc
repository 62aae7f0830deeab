#include "server/bounded_task_queue.h"

#include <utility>

namespace switchyard {

BoundedTaskQueue::BoundedTaskQueue(size_t threads, size_t max_waiting) : max_waiting_(max_waiting) {
  for (size_t i = 0; i < threads; ++i) {
    threads_.emplace_back([this] { Run(); });
  }
}

void BoundedTaskQueue::enqueue(std::function<void()> task) {
  const MutexLock lock(mutex_);
  while (waiting_.size() >= max_waiting_ && !ending_) {
    changed_.Wait(mutex_);
  }
  waiting_.push_back(std::move(task));
  changed_.NotifyAll();
}

void BoundedTaskQueue::shutdown() {
  {
    const MutexLock lock(mutex_);
    ending_ = true;
    changed_.NotifyAll();
  }
  for (std::thread& thread : threads_) {
    thread.join();
  }
  threads_.clear();
}

void BoundedTaskQueue::Run() {
  while (true) {
    std::function<void()> task;
    {
      const MutexLock lock(mutex_);
      while (waiting_.empty() && !ending_) {
        changed_.Wait(mutex_);
      }
      if (waiting_.empty()) {
        return;
      }
      task = std::move(waiting_.front());
      waiting_.pop_front();
      changed_.NotifyAll();
    }
    task();
  }
}

}  // namespace switchyard
