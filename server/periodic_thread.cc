#include "server/periodic_thread.h"

#include <utility>

namespace switchyard {

PeriodicThread::PeriodicThread(std::chrono::milliseconds pause, std::function<void()> job)
    : pause_(pause), job_(std::move(job)), thread_([this] { Run(); }) {}

PeriodicThread::~PeriodicThread() {
  {
    const MutexLock lock(mutex_);
    ending_ = true;
  }
  changed_.NotifyAll();
  thread_.join();
}

void PeriodicThread::Run() {
  while (Pause()) {
    job_();
  }
}

bool PeriodicThread::Pause() {
  const auto end = std::chrono::steady_clock::now() + pause_;
  const MutexLock lock(mutex_);
  while (!ending_ && changed_.WaitUntil(mutex_, end)) {
  }
  return !ending_;
}

}  // namespace switchyard
