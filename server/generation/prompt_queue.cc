#include "server/generation/prompt_queue.h"

#include <algorithm>

namespace switchyard {
namespace {

using std::chrono::milliseconds;

constexpr size_t kCountedDepartures = 64;
constexpr milliseconds kShortestDelay{100};
constexpr milliseconds kLongestDelay{60'000};
constexpr milliseconds kUnknownDelay{1000};

}  // namespace

PromptQueue::Place& PromptQueue::Place::operator=(Place&& other) noexcept {
  if (this != &other) {
    Release();
    queue_ = std::exchange(other.queue_, nullptr);
    tokens_ = other.tokens_;
  }
  return *this;
}

void PromptQueue::Place::Release() {
  if (queue_ != nullptr) {
    std::exchange(queue_, nullptr)->Leave(tokens_);
  }
}

StatusOr<PromptQueue::Place> PromptQueue::Enter(int64_t tokens) {
  const Clock::time_point now = now_();
  const MutexLock lock(mutex_);
  RETURN_IF_ERROR(CheckRoomFor(tokens));
  if (tokens_ == 0) {
    departures_.clear();
    departed_tokens_ = 0;
    counted_since_ = now;
  }
  tokens_ += tokens;
  return Place(*this, tokens);
}

Status PromptQueue::CheckRoom() const {
  const MutexLock lock(mutex_);
  return CheckRoomFor(1);
}

Status PromptQueue::CheckRoomFor(int64_t tokens) const {
  if (tokens_ == 0 || tokens_ + tokens <= max_tokens_) {
    return OkStatus();
  }
  return ResourceExhausted(
      tokens_,
      " prompt tokens are waiting and this request has ",
      tokens,
      " or more; the queue holds ",
      max_tokens_,
      "; try again later, or on another server"
  );
}

int64_t PromptQueue::Tokens() const {
  const MutexLock lock(mutex_);
  return tokens_;
}

milliseconds PromptQueue::RetryDelay() const {
  const Clock::time_point now = now_();
  const MutexLock lock(mutex_);
  if (departed_tokens_ == 0) {
    return kUnknownDelay;
  }
  const double seconds = std::chrono::duration<double>(now - counted_since_).count();
  const double half = static_cast<double>(tokens_) / 2;
  const double delay_seconds = half * seconds / static_cast<double>(departed_tokens_);
  // Compared as a double: the product may be larger than any integer.
  const double delay_ms =
      std::min(1000 * delay_seconds, static_cast<double>(kLongestDelay.count()));
  return std::max(kShortestDelay, milliseconds(static_cast<int64_t>(delay_ms)));
}

void PromptQueue::Leave(int64_t tokens) {
  const Clock::time_point now = now_();
  const MutexLock lock(mutex_);
  tokens_ -= tokens;
  departures_.push_back({.time = now, .tokens = tokens});
  departed_tokens_ += tokens;
  if (departures_.size() > kCountedDepartures) {
    counted_since_ = departures_.front().time;
    departed_tokens_ -= departures_.front().tokens;
    departures_.pop_front();
  }
}

}  // namespace switchyard
