#pragma once

#include <grpcpp/server_context.h>

#include <optional>

#include "server/call/call_record.h"
#include "server/serving_state.h"

namespace switchyard {

// One RPC from its first byte to its end: whose it is, in which trace it stands, and who is told
// how it went. Thread-compatible.
class IncomingCall {
 public:
  // Reads the client's metadata and answers with a `traceparent` of its own. `state` must outlive
  // this; `context` is used here and no more.
  IncomingCall(ServingState& state, const char* method, grpc::CallbackServerContext& context);
  // A call from within the process: no deadline, and nobody is told.
  explicit IncomingCall(ServingState& state) : state_(state) {}
  // A call that was accepted and has not finished is told as abandoned.
  ~IncomingCall();
  IncomingCall(const IncomingCall&) = delete;
  IncomingCall& operator=(const IncomingCall&) = delete;

  CallRecord& record() { return record_; }
  // When the client stops waiting; absent when it never does.
  std::optional<Clock::time_point> deadline() const { return deadline_; }
  // Whether to fill in the texts of record() and of CallEnd.
  bool KeepsTexts() const { return is_remote_ && state_.options().log_prompts; }

  // Requires: at most one of them is called first; Finish after Accept.
  void Accept();
  void Refuse(const Status& status);
  void Finish(const CallEnd& end);

 private:
  ServingState& state_;
  bool is_remote_ = false;
  bool is_running_ = false;  // accepted, and not finished
  CallRecord record_;
  std::optional<Clock::time_point> deadline_;
};

}  // namespace switchyard
