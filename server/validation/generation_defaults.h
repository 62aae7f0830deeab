#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "base/status.h"
#include "engine/request.h"

namespace switchyard {

// What an absent field of a request stands for.
struct GenerationDefaults {
  // seed and the lists of tokens are not among the defaults
  SamplingParameters sampling;
  int32_t max_tokens = 256;            // at most; less where the context ends before
  std::vector<int32_t> eos_token_ids;  // beside those of config.json
};

// `base` with what generation_config.json in `model_folder` says: temperature, top_k, top_p, min_p,
// typical_p, repetition_penalty, no_repeat_ngram_size, max_new_tokens, eos_token_id (a number or a
// list), and do_sample: false, which stands for temperature 0. Other keys are ignored, and the file
// may be absent. INVALID_ARGUMENT naming the file and the key when a value is of a wrong type or
// out of range for a model of this vocabulary.
StatusOr<GenerationDefaults> ReadGenerationDefaults(
    const std::filesystem::path& model_folder,
    int32_t vocabulary_size,
    const GenerationDefaults& base
);

}  // namespace switchyard
