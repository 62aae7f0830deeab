#include "server/serial_thread.h"

#include <utility>

namespace switchyard {

SerialThread::SerialThread() : thread_([this] { Run(); }) {}

SerialThread::~SerialThread() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  changed_.NotifyAll();
  thread_.join();
}

void SerialThread::Post(std::function<void()> job) {
  {
    const MutexLock lock(mutex_);
    jobs_.push_back(std::move(job));
  }
  changed_.NotifyAll();
}

std::function<void()> SerialThread::Next() {
  const MutexLock lock(mutex_);
  while (jobs_.empty() && !stopping_) {
    changed_.Wait(mutex_);
  }
  if (jobs_.empty()) {
    return nullptr;
  }
  std::function<void()> job = std::move(jobs_.front());
  jobs_.pop_front();
  return job;
}

void SerialThread::Run() {
  while (const std::function<void()> job = Next()) {
    job();
  }
}

}  // namespace switchyard
