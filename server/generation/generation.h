#pragma once

#include <grpcpp/support/byte_buffer.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "server/call/incoming_call.h"
#include "server/generation/request_registry.h"
#include "server/generation/token_stream.h"
#include "server/serving_state.h"
#include "switchyard/v1/inference.pb.h"

namespace switchyard {

// An RPC as gRPC hands it over, and when it wants to hear of the generation.
struct GenerationCall {
  IncomingCall& call;               // outlives the generation
  const grpc::ByteBuffer& request;  // as a message on the wire
  WakeWhen wake_when = WakeWhen::kAnythingCame;
  std::function<void()> wake;  // as TokenStream's
};

// How a generation came out: a status to end the RPC with and, when that is OK, its terminal event.
struct GenerationEnd {
  Status status;
  v1::Finished finished;
  std::vector<TokenStream::End> completions = {};
};

// One accepted request: what Generate, GenerateOnce and Score have in common. Cancel may be called
// from any thread, the rest by one at a time.
class Generation {
 public:
  // Parses a `Request` (GenerateRequest or ScoreRequest) and validates it, takes its id, and hands
  // it to the engine. `state` must outlive the result. `wake` may be called before this returns.
  // Does not throw.
  template <typename Request>
  static StatusOr<std::unique_ptr<Generation>> Start(ServingState& state, GenerationCall call);

  // The client is gone: the engine drops the request before its next step.
  void Cancel();

  TokenStream::Taken Take();

  // Gives the request's id back, so that the client may use it again as soon as it reads the end,
  // and says how it ended. Requires: taken.ends.
  GenerationEnd End(const TokenStream::Taken& taken);

  // Ends it because the client has not read for `waited`, without what was made meanwhile. In the
  // place of End.
  GenerationEnd EndStalled(std::chrono::milliseconds waited);

 private:
  Generation(ServingState& state, LoadedModel& model, IncomingCall& call)
      : state_(state), model_(model), call_(call) {}

  template <typename Request>
  static StatusOr<std::unique_ptr<Generation>> TryStart(ServingState& state, GenerationCall& call);
  Status Submit(ValidatedRequest valid, GenerationCall& call);
  Status StatusOf(const TokenStream::Taken& taken) const;
  Status OverflowStatus() const;
  void TellEnd(const TokenStream::Taken& taken, const Status& status);
  v1::Finished Describe(const TokenStream::Taken& taken) const;
  v1::CompletionEnd DescribeEnd(const TokenStream::End& end) const;
  bool IsEos(const FinishEvent& event) const;

  ServingState& state_;
  LoadedModel& model_;
  IncomingCall& call_;
  // What to do when the whole result is too large to be held; null when it is taken as it comes.
  const char* size_remedy_ = nullptr;
  RequestRegistry::Registration registration_;
  std::shared_ptr<TokenStream> stream_;  // shared with the engine
  RequestId engine_id_ = {};
  uint64_t seed_ = 0;
  bool ignores_eos_ = false;
  int32_t prompt_tokens_ = 0;
  std::vector<int32_t> echoed_prompt_;  // empty unless asked for
  int64_t unused_tokens_ = 0;           // taken of the key, should nothing be generated
  std::string completion_;              // all of them, for the log, if it takes texts
  std::atomic<bool> client_cancelled_ = false;
};

}  // namespace switchyard
