#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>

#include "engine/request.h"
#include "server/access/access_control.h"
#include "server/call/call_record.h"

namespace switchyard {

// What /metrics says of experts: nothing, each router, or each expert.
enum class ExpertMetricsLevel : uint8_t { kOff, kSummary, kFull };

struct ExpertMetricsOptions {
  ExpertMetricsLevel level = ExpertMetricsLevel::kSummary;
  int64_t max_series = 10'000;  // a model that makes more is not served; 0: any number
};

// How much the server takes on, and how long it waits for those on either side of it.
struct ServingOptions {
  int32_t max_streams = 1024;             // calls that use the engine
  int32_t max_streams_per_peer = 0;       // of one API key, else of one host; 0: any number
  int32_t max_streams_per_host = 0;       // calls of any kind; 0: any number
  int64_t max_queued_tokens = 256 << 10;  // prompt tokens; an empty queue takes any prompt
  std::chrono::milliseconds stall_timeout{30'000};  // for a client that does not read
  int64_t outbox_bytes = 3 << 20;                   // that one stream holds for its client
  int64_t max_answer_bytes = 64 << 20;              // of what is only sent whole
  std::chrono::milliseconds step_timeout{60'000};   // of the engine; 0: no watchdog
  ExpertMetricsOptions expert_metrics = {};
  bool log_requests = true;                          // a line for each that comes, ends, is refused
  bool log_prompts = false;                          // and what they say
  std::shared_ptr<AccessControl> access = {};        // null: no call needs a key
  std::shared_ptr<CallObserver> call_observer = {};  // told of each request, too; may be null
  std::function<Clock::time_point()> now = Clock::now;
};

}  // namespace switchyard
