#include "engine/make_sequences.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace switchyard {
namespace {

// The engine numbers requests one by one and never gets so far.
constexpr int kFollowerIdShift = 40;

// What completion number `index` is as a request of its own.
GenerationRequest RequestOf(
    const GenerationRequest& base, size_t index, const std::vector<int32_t>* continuation
) {
  GenerationRequest request = base;
  request.sampling.seed += index;
  if (continuation != nullptr) {
    request.prompt.insert(request.prompt.end(), continuation->begin(), continuation->end());
    request.stopping.max_tokens = 0;
  } else if (index > 0) {
    request.scoring.reset();  // the prompt is scored once
  }
  return request;
}

}  // namespace

std::unique_ptr<Sequence> MakeSequences(
    RequestId id, GenerationRequest request, const SequenceContext& context
) {
  const std::vector<std::vector<int32_t>> continuations = std::move(request.continuations);
  request.continuations.clear();
  const size_t count = continuations.empty()
                           ? static_cast<size_t>(std::exchange(request.completions, 1))
                           : continuations.size();
  const auto make = [&](size_t index) {
    const RequestId sequence_id{static_cast<uint64_t>(id) | (index << kFollowerIdShift)};
    auto sequence = std::make_unique<Sequence>(
        sequence_id,
        RequestOf(request, index, continuations.empty() ? nullptr : &continuations[index]),
        context.context_tokens,
        context.block_tokens
    );
    sequence->request_id = id;
    sequence->completion = static_cast<int32_t>(index);
    sequence->submitted_at = context.now;
    return sequence;
  };
  std::unique_ptr<Sequence> first = make(0);
  for (size_t index = 1; index < count; ++index) {
    first->followers.push_back(make(index));
  }
  return first;
}

std::unique_ptr<Sequence> MakeBeamSearch(
    RequestId id,
    GenerationRequest request,
    std::vector<int32_t> eos_token_ids,
    const SequenceContext& context
) {
  const StoppingParameters& stopping = request.stopping;
  if (stopping.ignore_eos) {
    eos_token_ids.clear();
  }
  const auto most = context.context_tokens - static_cast<int64_t>(request.prompt.size());
  BeamSearchOptions options{
      .width = request.beam_search->width,
      .length_penalty = request.beam_search->length_penalty,
      .max_tokens = static_cast<int32_t>(std::min<int64_t>(stopping.max_tokens, most)),
      .min_tokens = stopping.min_tokens,
      .eos_token_ids = std::move(eos_token_ids),
      .stop_token_ids = stopping.stop_token_ids};
  // The search looks at the likeliest tokens; what the sampler would choose does not matter.
  request.sampling.temperature = 0;
  request.sampling.top_logprobs = BeamSearch::TopTokens(options);
  auto group = std::make_shared<BeamGroup>(std::move(options), request.completions);
  const int32_t width = request.beam_search->width;
  auto sequence = std::make_unique<Sequence>(
      id, std::move(request), context.context_tokens, context.block_tokens
  );
  sequence->submitted_at = context.now;
  sequence->slots = width;
  group->sequences.push_back(sequence.get());
  sequence->beams = std::move(group);
  return sequence;
}

}  // namespace switchyard
