#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "base/status.h"
#include "server/call/trace_context.h"

namespace switchyard {

// What is known of a call when it is accepted or refused.
struct CallRecord {
  const char* method = "";  // "Generate"
  std::string peer;         // as gRPC spells it: "ipv4:10.0.0.7:50122"
  std::string key_name;     // of the client's API key; empty without one
  TraceContext trace;
  std::chrono::system_clock::time_point arrived_at;
  std::string request_id;  // empty until the request is read
  int32_t prompt_tokens = 0;
  int32_t max_tokens = 0;  // of one completion
  std::string prompt;      // empty unless the server was told to log prompts
};

// How a call that was accepted came out.
struct CallEnd {
  Status status;
  std::string reason = {};  // "stop", "length", "cancelled", "stalled", ...
  int32_t cached_prompt_tokens = 0;
  int64_t completion_tokens = 0;  // of all completions
  double queue_seconds = 0;
  double time_to_first_token_seconds = 0;
  double total_seconds = 0;
  std::string completion = {};  // as CallRecord::prompt
};

// Whoever wants to hear of generations; docs/logging.md shows how to export spans with one.
// Called from gRPC's and the server's threads, several at a time, and must not block.
class CallObserver {
 public:
  virtual ~CallObserver() = default;

  virtual void OnAccepted(const CallRecord& call) = 0;
  // After OnAccepted, once.
  virtual void OnFinished(const CallRecord& call, const CallEnd& end) = 0;
  // In the place of OnAccepted; also for calls that generate nothing, such as Tokenize.
  virtual void OnRefused(const CallRecord& call, const Status& status) = 0;
};

}  // namespace switchyard
