#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/histogram.h"
#include "engine/token_sink.h"

namespace switchyard {

// How a request that was accepted came out, as metrics spell it.
inline constexpr std::array kFinishReasons = {
    FinishReason::kStop,
    FinishReason::kLength,
    FinishReason::kScored,
    FinishReason::kCancelled,
    FinishReason::kDeadline,
    FinishReason::kError};
const char* NameOf(FinishReason reason);

// Latencies and outcomes of the requests since the server began. Thread-safe without a lock: the
// engine thread counts each token here.
class RequestMetrics {
 public:
  RequestMetrics();

  void OnToken(const TokenEvent& event);
  // Once for each request: with the last of its completions, or the first that failed.
  void OnRequestEnded(const FinishEvent& event);

  int64_t GeneratedTokens() const { return generated_tokens_; }
  int64_t Requests(FinishReason reason) const { return requests_[static_cast<size_t>(reason)]; }
  HistogramSnapshot TimeToFirstToken() const { return time_to_first_token_.Snapshot(); }
  HistogramSnapshot InterTokenLatency() const { return inter_token_latency_.Snapshot(); }
  HistogramSnapshot Queue() const { return queue_.Snapshot(); }
  HistogramSnapshot Duration() const { return duration_.Snapshot(); }

 private:
  std::atomic<int64_t> generated_tokens_ = 0;
  std::array<std::atomic<int64_t>, kFinishReasons.size()> requests_ = {};
  Histogram time_to_first_token_;
  Histogram inter_token_latency_;
  Histogram queue_;
  Histogram duration_;
};

}  // namespace switchyard
