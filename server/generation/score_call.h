#pragma once

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include <vector>

#include "server/generation/generation_reactor.h"
#include "switchyard/v1/inference.pb.h"

namespace switchyard {

// One running Score RPC: waits, without a thread, until every continuation is scored. Thread-safe.
class ScoreCall final : public GenerationReactor<grpc::ServerUnaryReactor, v1::ScoreRequest> {
 public:
  // `state`, `context` and `response` must outlive the RPC.
  ScoreCall(ServingState& state, grpc::CallbackServerContext& context, grpc::ByteBuffer& response)
      : GenerationReactor(state, "Score", context), response_(response) {}

  // Finishes the RPC if everything is scored.
  void Deliver() override;
  void OnTick(Clock::time_point /*now*/) override {}

 private:
  Status Answer(GenerationEnd end) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  grpc::ByteBuffer& response_;
  std::vector<v1::PromptLogprobs> collected_ ABSL_GUARDED_BY(mutex_);  // by continuation
};

}  // namespace switchyard
