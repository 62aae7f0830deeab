#include "server/metrics/request_metrics.h"

#include <array>

#include "base/histogram_bounds.h"

namespace switchyard {
namespace {

// Small sparse models decode in a millisecond: what starts at ten hides them.
constexpr std::array kInterTokenSeconds = {
    0.001,
    0.0025,
    0.005,
    0.01,
    0.015,
    0.02,
    0.03,
    0.05,
    0.075,
    0.1,
    0.15,
    0.25,
    0.5,
    1.0,
    2.5,
    10.0};
constexpr auto kFirstTokenSeconds =
    WithoutFirstAndWith<3>(kSecondsByDecades, std::array{30.0, 60.0, 300.0});
constexpr auto kRequestSeconds =
    WithoutFirstAndWith<5>(kSecondsByDecades, std::array{30.0, 60.0, 120.0, 300.0, 1800.0});

}  // namespace

const char* NameOf(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStop:
      return "stop";
    case FinishReason::kLength:
      return "length";
    case FinishReason::kScored:
      return "scored";
    case FinishReason::kCancelled:
      return "cancelled";
    case FinishReason::kDeadline:
      return "deadline";
    case FinishReason::kError:
      break;
  }
  return "error";
}

RequestMetrics::RequestMetrics()
    : time_to_first_token_(kFirstTokenSeconds),
      inter_token_latency_(kInterTokenSeconds),
      queue_(kFirstTokenSeconds),
      duration_(kRequestSeconds) {}

void RequestMetrics::OnToken(const TokenEvent& event) {
  generated_tokens_.fetch_add(1, std::memory_order_relaxed);
  if (!event.since_previous.has_value()) {
    return;
  }
  const double seconds = std::chrono::duration<double>(*event.since_previous).count();
  if (event.completion_tokens == 1) {
    time_to_first_token_.Observe(seconds);
  } else {
    inter_token_latency_.Observe(seconds);
  }
}

void RequestMetrics::OnRequestEnded(const FinishEvent& event) {
  requests_[static_cast<size_t>(event.reason)].fetch_add(1, std::memory_order_relaxed);
  queue_.Observe(event.queue_seconds);
  duration_.Observe(event.total_seconds);
}

}  // namespace switchyard
