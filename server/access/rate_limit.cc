#include "server/access/rate_limit.h"

#include <algorithm>
#include <chrono>

namespace switchyard {
namespace {

constexpr int64_t kMinuteNs = 60'000'000'000;
static_assert(RateLimit::kMaxPerMinute <= INT64_MAX / kMinuteNs);

}  // namespace

RateLimit::RateLimit(int64_t per_minute, Clock::time_point now)
    : per_minute_(per_minute), balance_(Capacity()), filled_at_(now) {}

int64_t RateLimit::Capacity() const {
  return per_minute_ * kMinuteNs;
}

void RateLimit::Fill(Clock::time_point now) {
  if (now <= filled_at_) {
    return;
  }
  const std::chrono::nanoseconds passed = now - filled_at_;
  const int64_t brings = std::min<int64_t>(passed.count(), kMinuteNs) * per_minute_;
  balance_ += std::min(brings, Capacity() - balance_);
  filled_at_ = now;
}

RateLimit::Verdict RateLimit::Take(int64_t units, Clock::time_point now) {
  if (per_minute_ == 0) {
    return {.is_taken = true};
  }
  if (units > per_minute_) {
    return {};
  }
  Fill(now);
  const int64_t missing = units * kMinuteNs - balance_;
  if (missing > 0) {
    const int64_t wait_ns = missing / per_minute_ + (missing % per_minute_ != 0 ? 1 : 0);
    return {.is_taken = false, .retry_after = std::chrono::nanoseconds(wait_ns)};
  }
  balance_ -= units * kMinuteNs;
  return {.is_taken = true};
}

void RateLimit::Return(int64_t units, Clock::time_point now) {
  Fill(now);
  balance_ += std::min(std::min(units, per_minute_) * kMinuteNs, Capacity() - balance_);
}

int64_t RateLimit::Available(Clock::time_point now) {
  Fill(now);
  return balance_ / kMinuteNs;
}

}  // namespace switchyard
