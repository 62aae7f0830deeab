#pragma once

#include <grpcpp/server_context.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "server/access/access_control.h"
#include "server/call/call_record.h"
#include "server/serving_state.h"
#include "switchyard/v1/inference.pb.h"

namespace switchyard {

// Where a call came in: what concerns the server as a whole needs the admin address.
enum class Door : uint8_t { kPublic, kAdmin };

// One RPC from its first byte to its end: whose it is and what they may take, in which trace it
// stands, and who is told how it went. Thread-compatible.
class IncomingCall {
 public:
  // Reads the client's metadata and answers with a `traceparent` of its own. `state` must outlive
  // this; `context` is used here and no more.
  IncomingCall(ServingState& state, const char* method, grpc::CallbackServerContext& context);
  // A call from within the process: no deadline, no key, and nobody is told.
  explicit IncomingCall(ServingState& state) : state_(state) {}
  // A call that was accepted and has not finished is told as abandoned.
  ~IncomingCall();
  IncomingCall(const IncomingCall&) = delete;
  IncomingCall& operator=(const IncomingCall&) = delete;

  // Whether the client may call at all: RESOURCE_EXHAUSTED when its host has as many calls open as
  // it may, of which this is one until it goes. Where the server has keys: UNAUTHENTICATED,
  // PERMISSION_DENIED (a key that is not admin, at that door) or RESOURCE_EXHAUSTED (too many
  // requests).
  Status Admit(Door door = Door::kPublic);
  // Whether it may have one more generation open, until this goes.
  Status EnterGeneration();
  // The key's priority, for a request that asks for none; INVALID_ARGUMENT for more than it.
  Status ApplyPriority(const v1::SchedulingOptions& asked, int32_t& priority) const;
  // Takes tokens of the key's; ReturnTokens gives back what was not used. Refuse gives back all.
  Status TakeTokens(int64_t tokens);
  void ReturnTokens(int64_t tokens);

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
  Status EnterHost();

  ServingState& state_;
  bool is_remote_ = false;
  bool is_running_ = false;  // accepted, and not finished
  CallRecord record_;
  std::optional<Clock::time_point> deadline_;
  std::string authorization_;            // as the client sent it
  std::shared_ptr<KeyAccount> account_;  // null where no key was asked for
  int64_t taken_tokens_ = 0;
  std::string entered_as_;    // to the generations of a client; empty when not
  std::string entered_from_;  // to the calls of a host, likewise
};

// PERMISSION_DENIED, saying where `method` may be called, unless that is here.
Status CheckAdminDoor(const char* method, Door door);

// As IncomingCall::Admit, for calls of which nothing else is asked; keep it until the call ends.
// What is refused is told.
StatusOr<std::shared_ptr<IncomingCall>> AdmitCall(
    ServingState& state, const char* method, grpc::CallbackServerContext& context, Door door
);

}  // namespace switchyard
