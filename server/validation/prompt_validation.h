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

// Priorities are in [-kMaxPriority, kMaxPriority].
inline constexpr int32_t kMaxPriority = 100;

// The fields that GenerateRequest and ScoreRequest have in common.
struct PromptFields {
  const std::string* text = nullptr;  // null when absent, as the next one
  const v1::TokenIds* tokens = nullptr;
  bool parse_special_tokens = false;
  std::optional<bool> add_bos = {};
};
template <typename Request>
PromptFields PromptFieldsOf(const Request& request) {
  PromptFields fields{.parse_special_tokens = request.parse_special_tokens()};
  if (request.has_prompt_text()) {
    fields.text = &request.prompt_text();
  }
  if (request.has_prompt_tokens()) {
    fields.tokens = &request.prompt_tokens();
  }
  if (request.has_add_bos()) {
    fields.add_bos = request.add_bos();
  }
  return fields;
}

// The prompt as token ids; INVALID_ARGUMENT (a FieldViolation) when there is not exactly one, or
// one that is empty or not of this model.
StatusOr<std::vector<int32_t>> ReadPrompt(const PromptFields& fields, const LoadedModel& model);
// The name of the field that the prompt came in.
const char* PromptFieldName(const PromptFields& fields);

// Ids as they are. `field` is the path to them.
StatusOr<std::vector<int32_t>> ReadTokenIds(
    const std::string& field, const v1::TokenIds& tokens, const LoadedModel& model
);
// Text as token ids; not empty, and all in the model's vocabulary.
StatusOr<std::vector<int32_t>> ReadText(
    const std::string& field,
    const std::string& text,
    const EncodeOptions& options,
    const LoadedModel& model
);

// A FieldViolation of "request_id".
Status CheckRequestId(const std::string& id);

// Priority and prefix sharing, into `request`.
Status ReadScheduling(const v1::SchedulingOptions& message, GenerationRequest& request);

}  // namespace switchyard
