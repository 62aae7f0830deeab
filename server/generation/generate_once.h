#pragma once

#include <vector>

#include "server/generation/unary_generation.h"
#include "switchyard/v1/inference.pb.h"

namespace switchyard {

// One running GenerateOnce RPC.
class GenerateOnce final : public UnaryGeneration<v1::GenerateRequest> {
 public:
  GenerateOnce(
      ServingState& state, grpc::CallbackServerContext& context, grpc::ByteBuffer& response
  )
      : UnaryGeneration(state, "GenerateOnce", context, response) {}

 private:
  void Collect(const TokenStream::Part& part) override;
  Status Answer(GenerationEnd end, grpc::ByteBuffer& bytes) override;

  std::vector<v1::Completion> completions_;
  v1::PromptLogprobs prompt_;
  std::vector<RoutingTraces> routing_;  // by completion
};

}  // namespace switchyard
