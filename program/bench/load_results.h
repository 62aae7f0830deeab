#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/status.h"
#include "program/bench/latency_histogram.h"
#include "program/bench/load_plan.h"

namespace switchyard {

using BenchClock = std::chrono::steady_clock;

// How a request ended, seen from what was planned for it.
enum class Outcome : uint8_t {
  kCompleted,
  kCancelled,     // by us, as planned
  kPastDeadline,  // of its planned short deadline
  kStallEnded,    // by the server while we did not read, as planned
  kFailed,        // anything else; counted by status code
};

// Messages that brought tokens: how long after the one before, and how many tokens.
struct MessageGap {
  std::chrono::nanoseconds gap;
  int32_t tokens = 0;
};

// All that is known of one request after its end.
struct RequestRecord {
  uint64_t index = 0;
  Disturbance disturbance = Disturbance::kNone;
  Status status;
  bool has_finished = false;  // whether the `finished` event came
  int32_t asked_tokens = 0;   // max_tokens
  int32_t received_tokens = 0;
  int32_t prompt_tokens = 0;  // these three are the server's words in `finished`
  int32_t cached_prompt_tokens = 0;
  std::chrono::nanoseconds server_queue{0};
  std::chrono::nanoseconds until_first_token{0};
  std::chrono::nanoseconds until_end{0};
  bool within_window = false;  // whether it ended before the time of the load was over
  std::vector<MessageGap> gaps;
  bool verify = false;
  std::vector<int32_t> token_ids;  // when it is to be verified
};

// OK and a stream of exactly the tokens that were asked for is kCompleted; OK without them is a
// failure with DATA_LOSS, which is written into the record.
Outcome OutcomeOf(RequestRecord& record);

struct FailureCount {
  int64_t count = 0;
  std::string first_message;
  LatencyHistogram until_answer;
};

struct VerifiableRequest {
  uint64_t index = 0;
  std::vector<int32_t> token_ids = {};
};

// Sums of records. Latencies are those of completed requests that were not stalled: what a client
// did to itself says nothing about the server. Thread-compatible.
struct LoadResults {
  int64_t started = 0;
  int64_t completed = 0;
  int64_t cancelled = 0;
  int64_t past_deadline = 0;
  int64_t stall_ended = 0;
  int64_t failed = 0;
  int64_t stalled = 0;  // planned so and ended in whatever way
  int64_t completed_within_window = 0;
  int64_t prompt_tokens_within_window = 0;  // of the completed
  int64_t prompt_tokens = 0;                // of all completed; so cached_prompt_tokens
  int64_t cached_prompt_tokens = 0;
  int64_t received_tokens = 0;  // of all requests
  int64_t received_tokens_within_window = 0;
  bool gave_up = false;       // because the server was unavailable for long
  double window_seconds = 0;  // the time to divide counts within the window by
  LatencyHistogram time_to_first_token;
  LatencyHistogram inter_token;  // a message of k tokens: k times a k-th of its gap
  LatencyHistogram message_gap;
  LatencyHistogram end_to_end;
  LatencyHistogram server_queue;
  std::map<StatusCode, FailureCount> failures;
  std::vector<VerifiableRequest> verifiable;

  void Add(RequestRecord record);
  // `count` per second of the window; 0 when that is empty.
  double PerSecond(int64_t count_within_window) const;
};

}  // namespace switchyard
