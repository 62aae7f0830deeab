#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "switchyard/v1/inference.pb.h"

namespace switchyard {

// What `generate` may ask of a generation, as it is parsed. Absent: the model's default.
struct GenerationFlags {
  std::string prompt;
  std::string prompt_tokens;
  std::optional<float> temperature;
  std::optional<int32_t> top_k;
  std::optional<float> top_p;
  std::optional<float> min_p;
  std::optional<float> typical_p;
  std::optional<float> repetition_penalty;
  std::optional<float> presence_penalty;
  std::optional<float> frequency_penalty;
  std::optional<int32_t> no_repeat_ngram_size;
  std::vector<std::string> bad_words;
  std::vector<std::string> bad_word_tokens;
  std::vector<int32_t> allowed_token_ids;
  std::optional<uint64_t> seed;
  std::optional<int32_t> max_tokens;
  std::optional<int32_t> min_tokens;
  std::vector<std::string> stop_strings;
  std::vector<int32_t> stop_token_ids;
  std::optional<int32_t> top_logprobs;
  std::optional<int32_t> prompt_top_logprobs;
  std::optional<int32_t> completions;
  std::optional<int32_t> best_of;
  std::optional<int32_t> beam_width;
  std::optional<float> length_penalty;
  std::optional<int32_t> priority;
  std::string cache_salt;
  bool bypass_prefix_cache = false;
  bool ignore_eos = false;
  bool include_stop = false;
};

void AddGenerationFlags(CLI::App& command, GenerationFlags& flags);

// The request. Ranges are the server's business: its messages name the field, the value and the
// limit. INVALID_ARGUMENT for a list of token ids that is none.
StatusOr<v1::GenerateRequest> RequestOf(const GenerationFlags& flags);

}  // namespace switchyard
