#include "server/validation/prompt_validation.h"

#include <algorithm>

#include "server/validation/field_violation.h"
#include "server/validation/request_validation.h"

namespace switchyard {
namespace {

constexpr size_t kMaxRequestIdBytes = 128;
constexpr size_t kMaxCacheSaltBytes = 64;

}  // namespace

Status CheckRequestId(const std::string& id) {
  if (id.size() > kMaxRequestIdBytes) {
    return FieldViolation(
        "request_id",
        Concat(
            "has ",
            id.size(),
            " bytes; at most ",
            kMaxRequestIdBytes,
            " are taken; shorten it, or leave it out and the server makes one"
        )
    );
  }
  // Ids go into log lines, which a line break would forge.
  const bool has_control = std::any_of(id.begin(), id.end(), [](char letter) {
    const auto byte = static_cast<unsigned char>(letter);
    return byte < 0x20 || byte == 0x7F;
  });
  return has_control ? FieldViolation("request_id", "has a control character; use printable ones")
                     : OkStatus();
}

StatusOr<std::vector<int32_t>> ReadTokenIds(
    const std::string& field, const v1::TokenIds& tokens, const LoadedModel& model
) {
  if (tokens.ids().empty()) {
    return FieldViolation(field, "is empty; send at least one token id");
  }
  for (int i = 0; i < tokens.ids_size(); ++i) {
    const int32_t id = tokens.ids(i);
    if (id < 0 || id >= model.vocabulary_size) {
      return CheckTokenId(Concat(field, "[", i, "]"), id, model.vocabulary_size);
    }
  }
  return std::vector<int32_t>(tokens.ids().begin(), tokens.ids().end());
}

StatusOr<std::vector<int32_t>> ReadText(
    const std::string& field,
    const std::string& text,
    const EncodeOptions& options,
    const LoadedModel& model
) {
  if (text.empty()) {
    return FieldViolation(field, "is empty; send at least one character");
  }
  RETURN_IF_ERROR(CheckHasTokenizer(field, model));
  StatusOr<std::vector<int32_t>> ids = model.tokenizer->Encode(text, options);
  if (ids.status().code() == StatusCode::kInvalidArgument) {
    return FieldViolation(field, Concat("cannot be tokenized: ", MessageOf(ids.status())));
  }
  RETURN_IF_ERROR(ids.status());
  if (ids->empty()) {
    return FieldViolation(field, "comes to no tokens at all; send a character that is not a space");
  }
  for (const int32_t id : *ids) {
    // A tokenizer may know more tokens than the model has embeddings for.
    RETURN_IF_ERROR(CheckTokenId(Concat(field, ": one of its tokens"), id, model.vocabulary_size));
  }
  return ids;
}

StatusOr<std::vector<int32_t>> ReadPrompt(const PromptFields& fields, const LoadedModel& model) {
  if (fields.text != nullptr && fields.tokens != nullptr) {
    return FieldViolation("prompt_tokens", "and prompt_text are both set; send one of them");
  }
  if (fields.tokens != nullptr) {
    return ReadTokenIds("prompt_tokens.ids", *fields.tokens, model);
  }
  if (fields.text != nullptr) {
    const EncodeOptions options{
        .add_bos = fields.add_bos, .parse_special = fields.parse_special_tokens};
    return ReadText("prompt_text", *fields.text, options, model);
  }
  return FieldViolation("prompt_text", "and prompt_tokens are both missing; send one of them");
}

const char* PromptFieldName(const PromptFields& fields) {
  return fields.tokens != nullptr ? "prompt_tokens" : "prompt_text";
}

Status ReadScheduling(const v1::SchedulingOptions& message, GenerationRequest& request) {
  const int32_t priority = message.priority();
  if (priority < -kMaxPriority || priority > kMaxPriority) {
    return FieldViolation(
        "scheduling.priority",
        Concat(
            "is ",
            priority,
            "; it must be in [",
            -kMaxPriority,
            ", ",
            kMaxPriority,
            "]; 0 is normal"
        )
    );
  }
  if (message.cache_salt().size() > kMaxCacheSaltBytes) {
    return FieldViolation(
        "scheduling.cache_salt",
        Concat(
            "has ",
            message.cache_salt().size(),
            " bytes; at most ",
            kMaxCacheSaltBytes,
            " are taken; send a hash of it"
        )
    );
  }
  request.priority = priority;
  request.prefix_sharing.salt = message.cache_salt();
  request.prefix_sharing.enabled = !message.bypass_prefix_cache();
  return OkStatus();
}

}  // namespace switchyard
