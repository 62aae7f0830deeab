#include "server/generation/score_call.h"

#include <algorithm>
#include <utility>

#include "server/generation/message_bytes.h"

namespace switchyard {

void ScoreCall::Collect(const TokenStream::Part& part) {
  const auto index = static_cast<size_t>(part.delta.completion());
  collected_.resize(std::max(collected_.size(), index + 1));
  collected_[index].MergeFrom(part.prompt);
}

Status ScoreCall::Answer(GenerationEnd end, grpc::ByteBuffer& bytes) {
  RETURN_IF_ERROR(end.status);
  collected_.resize(end.completions.size());
  v1::ScoreResponse response;
  response.set_request_id(end.finished.request_id());
  response.mutable_usage()->Swap(end.finished.mutable_usage());
  response.mutable_timings()->Swap(end.finished.mutable_timings());
  int32_t scored = 0;
  for (size_t index = 0; index < collected_.size(); ++index) {
    v1::ContinuationScore& score = *response.add_scores();
    score.set_logprob_sum(end.completions[index].scored_logprob_sum);
    score.set_is_greedy(end.completions[index].is_greedy);
    for (const v1::TokenLogprobs& token : collected_[index].tokens()) {
      score.add_token_ids(token.chosen().token_id());
    }
    score.mutable_logprobs()->Swap(collected_[index].mutable_tokens());
    scored += score.token_ids_size();
  }
  response.mutable_usage()->set_completion_tokens(scored);
  return SerializeMessage(response, bytes);
}

}  // namespace switchyard
