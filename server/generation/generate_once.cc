#include "server/generation/generate_once.h"

#include <algorithm>
#include <utility>

#include "server/generation/message_bytes.h"

namespace switchyard {

void GenerateOnce::Collect(const TokenStream::Part& part) {
  const v1::Delta& delta = part.delta;
  prompt_.mutable_tokens()->MergeFrom(part.prompt.tokens());
  const auto index = static_cast<size_t>(delta.completion());
  completions_.resize(std::max(completions_.size(), index + 1));
  routing_.resize(completions_.size());
  for (const v1::RoutingTrace& trace : part.routing) {
    AppendTrace(trace, routing_[index]);
  }
  completions_[index].mutable_text()->append(delta.text());
  completions_[index].mutable_token_ids()->MergeFrom(delta.token_ids());
  completions_[index].mutable_logprobs()->MergeFrom(delta.logprobs());
}

Status GenerateOnce::Answer(GenerationEnd end, grpc::ByteBuffer& bytes) {
  RETURN_IF_ERROR(end.status);
  completions_.resize(end.completions.size());
  v1::GenerateOnceResponse response;
  v1::Completion& first = completions_[0];
  response.mutable_text()->swap(*first.mutable_text());
  response.mutable_token_ids()->Swap(first.mutable_token_ids());
  response.mutable_logprobs()->Swap(first.mutable_logprobs());
  for (size_t index = 1; index < completions_.size(); ++index) {
    response.add_further_completions()->Swap(&completions_[index]);
  }
  for (const RoutingTraces& traces : routing_) {
    response.mutable_routing()->MergeFrom(traces);
  }
  response.mutable_prompt_logprobs()->Swap(prompt_.mutable_tokens());
  response.mutable_finished()->Swap(&end.finished);
  return SerializeMessage(response, bytes);
}

}  // namespace switchyard
