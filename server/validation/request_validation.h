#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "engine/request.h"
#include "server/loaded_model.h"
#include "switchyard/v1/inference.pb.h"

namespace switchyard {

// A request that the engine may take: every value is in range and fits the model.
struct ValidatedRequest {
  std::string request_id;        // as the client sent it; may be empty
  GenerationRequest generation;  // without deadline and sink; the seed is the client's if has_seed
  bool has_seed = false;
  std::optional<int32_t> best = {};  // of generation.completions, how many are wanted
  std::vector<std::string> stop_strings;
  bool include_stop = false;
  bool echo_prompt_tokens = false;
  int32_t prompt_top_logprobs = 0;  // to tell; the engine may be asked for more
};

// Pure: looks at each field, tokenizes text, then checks lengths. NOT_FOUND for another model; else
// INVALID_ARGUMENT, a FieldViolation of the first field that is wrong.
StatusOr<ValidatedRequest> ValidateRequest(
    const v1::GenerateRequest& request, const LoadedModel& model
);
StatusOr<ValidatedRequest> ValidateRequest(
    const v1::ScoreRequest& request, const LoadedModel& model
);

// NOT_FOUND when `name` is neither empty nor this model's.
Status CheckModelName(const std::string& name, const LoadedModel& model);

// INVALID_ARGUMENT (a FieldViolation) when `model` has no tokenizer, which `field` needs.
Status CheckHasTokenizer(const std::string& field, const LoadedModel& model);

}  // namespace switchyard
