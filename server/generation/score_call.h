#pragma once

#include <vector>

#include "server/generation/unary_generation.h"
#include "switchyard/v1/inference.pb.h"

namespace switchyard {

// One running Score RPC, until every continuation is scored.
class ScoreCall final : public UnaryGeneration<v1::ScoreRequest> {
 public:
  ScoreCall(ServingState& state, grpc::CallbackServerContext& context, grpc::ByteBuffer& response)
      : UnaryGeneration(state, "Score", context, response) {}

 private:
  void Collect(const TokenStream::Part& part) override;
  Status Answer(GenerationEnd end, grpc::ByteBuffer& bytes) override;

  std::vector<v1::PromptLogprobs> collected_;  // by continuation
};

}  // namespace switchyard
