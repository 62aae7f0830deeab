#include "engine/sequence.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/check.h"

namespace switchyard {
namespace {

double Seconds(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

bool HasPenalties(const SamplingParameters& sampling) {
  return sampling.repetition_penalty != 1 || sampling.presence_penalty != 0 ||
         sampling.frequency_penalty != 0;
}

}  // namespace

Sequence::Sequence(
    RequestId sequence_id, GenerationRequest accepted, int64_t context_tokens, int32_t block_tokens
)
    : id(sequence_id),
      request_id(sequence_id),
      request(std::move(accepted)),
      prompt_tokens(static_cast<int32_t>(request.prompt.size())),
      max_total_tokens(static_cast<int32_t>(
          std::min(context_tokens, int64_t{prompt_tokens} + request.stopping.max_tokens)
      )),
      tokens(std::move(request.prompt)),
      only_scores(request.stopping.max_tokens == 0),
      next_scored(request.scoring.value_or(ScoringParameters()).first_token),
      has_penalties(HasPenalties(request.sampling)),
      is_warm_up(request.counts_as_warm_up) {
  CHECK(1 <= prompt_tokens && prompt_tokens < max_total_tokens + (only_scores ? 1 : 0))
      << "prompt_tokens=" << prompt_tokens << " max_total_tokens=" << max_total_tokens;
  request.prompt.clear();
  tokens.reserve(static_cast<size_t>(max_total_tokens));
  blocks.reserve(static_cast<size_t>(BlocksFor(max_total_tokens, block_tokens)));
  prefixes.reserve(blocks.capacity());
  if (has_penalties) {
    history.Start(tokens, max_total_tokens - prompt_tokens);
  }
  if (request.sampling.no_repeat_ngram_tokens > 0) {
    ngrams.Start(request.sampling.no_repeat_ngram_tokens, tokens, max_total_tokens);
  }
}

Sequence::Sequence(const Sequence& parent, RequestId sequence_id)
    : id(sequence_id),
      request_id(parent.request_id),
      arrival(parent.arrival),
      state(parent.state),
      request(parent.request),
      prompt_tokens(parent.prompt_tokens),
      max_total_tokens(parent.max_total_tokens),
      beams(parent.beams),
      has_penalties(parent.has_penalties),
      is_warm_up(parent.is_warm_up),
      submitted_at(parent.submitted_at),
      admitted_at(parent.admitted_at),
      first_token_at(parent.first_token_at),
      last_token_at(parent.last_token_at) {
  tokens.reserve(parent.tokens.capacity());
  tokens = parent.tokens;
  blocks.reserve(parent.blocks.capacity());
  prefixes.reserve(parent.prefixes.capacity());
}

FinishEvent Sequence::Finish(Clock::time_point now) const {
  FinishEvent event;
  event.completion = completion;
  event.prompt_tokens = prompt_tokens;
  event.completion_tokens = CompletionTokens();
  event.cached_prompt_tokens = cached_prompt_tokens;
  event.queue_seconds = Seconds(submitted_at, admitted_at.value_or(now));
  if (first_token_at.has_value()) {
    event.time_to_first_token_seconds = Seconds(submitted_at, *first_token_at);
    event.decode_seconds = Seconds(*first_token_at, last_token_at);
  }
  event.total_seconds = Seconds(submitted_at, now);
  return event;
}

std::pair<int32_t, int32_t> SequenceSlice::ScoredPositions() const {
  // A token's logits come from the one before it.
  const int32_t first = std::max(sequence->next_scored, planned.first_token + 1);
  const int32_t end = std::min(sequence->prompt_tokens, planned.first_token + planned.tokens + 1);
  return sequence->request.scoring.has_value() && first < end ? std::pair(first, end)
                                                              : std::pair(0, 0);
}

void Sequence::Append(int32_t token_id) {
  tokens.push_back(token_id);
  if (has_penalties) {
    history.AddOutputToken(token_id);
  }
  if (request.sampling.no_repeat_ngram_tokens > 0) {
    ngrams.AddLast(tokens);
  }
}

}  // namespace switchyard
