#pragma once

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include <vector>

#include "server/generation/generation_reactor.h"
#include "switchyard/v1/inference.pb.h"

namespace switchyard {

// One running GenerateOnce RPC: waits, without a thread, until the generation is over. Thread-safe.
class GenerateOnce final : public GenerationReactor<grpc::ServerUnaryReactor, v1::GenerateRequest> {
 public:
  // `state`, `context` and `response` must outlive the RPC.
  GenerateOnce(
      ServingState& state, grpc::CallbackServerContext& context, grpc::ByteBuffer& response
  )
      : GenerationReactor(state, "GenerateOnce", context), response_(response) {}

  // Finishes the RPC if the generation is over.
  void Deliver() override;
  void OnTick(Clock::time_point /*now*/) override {}

 private:
  void Collect(const TokenStream::Part& part) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Status Answer(GenerationEnd end) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  grpc::ByteBuffer& response_;
  std::vector<v1::Completion> completions_ ABSL_GUARDED_BY(mutex_);
  v1::PromptLogprobs prompt_ ABSL_GUARDED_BY(mutex_);
  std::vector<RoutingTraces> routing_ ABSL_GUARDED_BY(mutex_);  // by completion
};

}  // namespace switchyard
