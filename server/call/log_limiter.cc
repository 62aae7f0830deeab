#include "server/call/log_limiter.h"

#include <utility>

namespace switchyard {

std::optional<int64_t> LogLimiter::Admit(Clock::time_point now) {
  const MutexLock lock(mutex_);
  if (!second_began_ || now - *second_began_ >= std::chrono::seconds(1)) {
    second_began_ = now;
    logged_ = 0;
  }
  if (logged_ >= events_per_second_) {
    ++left_out_;
    return std::nullopt;
  }
  ++logged_;
  return std::exchange(left_out_, 0);
}

}  // namespace switchyard
