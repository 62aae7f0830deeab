#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/token_sink.h"

namespace switchyard {

enum class RequestId : uint64_t {};

using Clock = std::chrono::steady_clock;

// Values are checked where they enter (server/validation/request_validation); the engine CHECKs.
struct SamplingParameters {
  float temperature = 1;
  int32_t top_k = 0;
  float top_p = 1;
  float min_p = 0;
  float typical_p = 1;
  float repetition_penalty = 1;
  float presence_penalty = 0;
  float frequency_penalty = 0;
  uint64_t seed = 0;
  std::vector<std::pair<int32_t, float>> logit_bias = {};  // distinct token ids
  // A token that would complete a run of so many tokens that prompt and completion already hold is
  // forbidden; 0: none is.
  int32_t no_repeat_ngram_tokens = 0;
  // The last token of each of these is forbidden where the ones before it end prompt and completion
  // so far. None is empty.
  std::vector<std::vector<int32_t>> bad_words = {};
  std::vector<int32_t> allowed_token_ids = {};  // ascending, distinct; empty: all
  std::optional<int32_t> top_logprobs = {};     // absent: none wanted
};

struct StoppingParameters {
  int32_t max_tokens = 1;  // >= 1; prompt + max_tokens <= context
  int32_t min_tokens = 0;  // until then eos and stop tokens are never chosen
  std::vector<int32_t> stop_token_ids = {};
  bool ignore_eos = false;
};

// Who may read the keys and values that this request computes, and whose it may read.
struct PrefixSharing {
  bool enabled = true;    // false: nobody's, and nobody may
  std::string salt = {};  // only with requests of the same salt
};

// Instead of sampling: the likeliest completions that a search of this width finds.
struct BeamParameters {
  int32_t width = 2;
  float length_penalty = 1;
};

// Log-probabilities of tokens that are given, not generated.
struct ScoringParameters {
  int32_t first_token = 1;  // of the prompt with its continuation; >= 1: the first has none
  int32_t top_logprobs = 0;
};

struct GenerationRequest {
  std::vector<int32_t> prompt;  // at least one token, all in the vocabulary
  // How many completions of the prompt to sample; the i-th uses sampling.seed + i, so each is what
  // a request of its own with that seed would give.
  int32_t completions = 1;
  std::optional<BeamParameters> beam_search = {};  // `completions` are then the best so many
  // If any: nothing is generated. Each is scored behind the prompt, as a completion of its own.
  std::vector<std::vector<int32_t>> continuations = {};
  std::optional<ScoringParameters> scoring = {};
  bool trace_routing = false;      // whether the sink hears of it; not with beam_search
  bool counts_as_warm_up = false;  // what its routing counts as: nobody wants its tokens
  SamplingParameters sampling;
  StoppingParameters stopping;
  int32_t priority = 0;  // higher goes first
  PrefixSharing prefix_sharing;
  std::optional<Clock::time_point> deadline;
  std::shared_ptr<TokenSink> sink;
};

}  // namespace switchyard
