#include "base/mutex.h"

namespace switchyard {

void ConditionVariable::Wait(Mutex& mutex) {
  std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
  condition_.wait(lock);
  lock.release();  // the caller still holds it
}

bool ConditionVariable::WaitUntil(Mutex& mutex, std::chrono::steady_clock::time_point deadline) {
  std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
  const std::cv_status status = condition_.wait_until(lock, deadline);
  lock.release();
  return status == std::cv_status::no_timeout;
}

}  // namespace switchyard
