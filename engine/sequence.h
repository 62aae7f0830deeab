#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "engine/beam_group.h"
#include "engine/block_id.h"
#include "engine/ngram_index.h"
#include "engine/prefix_index.h"
#include "engine/request.h"
#include "engine/scheduler.h"
#include "engine/token_history.h"

namespace switchyard {

enum class SequenceState : uint8_t { kWaiting, kRunning, kFinished };

// What the engine keeps of one request from Submit until it has finished. Everything that grows
// while it runs has its final capacity from the start. Made by the submitting thread, then used
// only by the engine thread.
struct Sequence {
  // Takes the prompt out of `accepted`. Requires: 1 <= prompt tokens, and room for a token behind
  // them unless only_scores.
  Sequence(
      RequestId sequence_id,
      GenerationRequest accepted,
      int64_t context_tokens,
      int32_t block_tokens
  );

  // One that goes on from `parent` under another id, without its blocks.
  Sequence(const Sequence& parent, RequestId sequence_id);

  // Whether position `token` is one whose log-probability is still to be told.
  bool IsToBeScored(int32_t token) const {
    return request.scoring.has_value() && next_scored <= token && token < prompt_tokens;
  }

  int32_t KnownTokens() const { return static_cast<int32_t>(tokens.size()); }
  int32_t CompletionTokens() const { return KnownTokens() - prompt_tokens; }
  // Everything but the reason, for a sequence that finishes now.
  FinishEvent Finish(Clock::time_point now) const;

  // The next token, as the sampler chose it.
  void Append(int32_t token_id);

  RequestId id;          // of this sequence alone
  RequestId request_id;  // what the client may cancel: the id of the first completion
  int32_t completion = 0;
  // The other completions of the request: they wait here until this one has computed the prompt,
  // and then find it in the cache.
  std::vector<std::unique_ptr<Sequence>> followers = {};
  uint64_t arrival = 0;  // order of arrival in the engine
  SequenceState state = SequenceState::kWaiting;
  GenerationRequest request;  // without the prompt: it is the head of `tokens`
  int32_t prompt_tokens;
  int32_t max_total_tokens;     // prompt + max_tokens, at most the context
  std::vector<int32_t> tokens;  // prompt, then generated
  int32_t computed_tokens = 0;  // of those, in the KV cache
  // Places among the running ones: those of the beams it will be forked into.
  int32_t slots = 1;
  std::shared_ptr<BeamGroup> beams = {};  // of a beam search, else null
  int32_t beam = 0;                       // which of them this is
  // How many ever were; below that a token is computed again after a preemption.
  int32_t most_computed_tokens = 0;
  std::vector<BlockId> blocks;  // by position: block i holds tokens i * block_tokens and on
  // For each of `blocks`, from the first, whose content the pool knows: the run that ends with it.
  std::vector<PrefixId> prefixes;
  int32_t cached_prompt_tokens = 0;  // found in the cache when first admitted
  bool only_scores = false;          // ends when its tokens are scored
  int32_t next_scored = 0;           // the first token whose log-probability has not been told
  int32_t next_traced = 0;           // the first position whose routing has not been told
  bool has_penalties;
  TokenHistory history;  // empty unless has_penalties
  NgramIndex ngrams;     // empty unless no_repeat_ngram_tokens is set
  bool is_warm_up;       // its routing counts as warm-up

  Clock::time_point submitted_at;
  std::optional<Clock::time_point> admitted_at;
  std::optional<Clock::time_point> first_token_at;
  Clock::time_point last_token_at;
};

// A slice of the plan with the sequence it is cut from.
struct SequenceSlice {
  Sequence* sequence = nullptr;
  PlannedSlice planned;

  // Positions of the tokens that this slice gives the logits to score: [first, second).
  std::pair<int32_t, int32_t> ScoredPositions() const;
};

}  // namespace switchyard
