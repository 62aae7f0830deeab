#include <algorithm>
#include <string>
#include <utility>

#include "server/validation/field_violation.h"
#include "server/validation/prompt_validation.h"
#include "server/validation/request_validation.h"
#include "server/validation/sampling_validation.h"

namespace switchyard {
namespace {

// Nothing is generated: prompt and continuation together are what the server has to read.
Status CheckLength(
    const std::string& field, size_t prompt_tokens, size_t tokens, const LoadedModel& model
) {
  const auto total = static_cast<int64_t>(prompt_tokens + tokens);
  const int32_t limit = model.limits.max_prompt_tokens;
  const bool is_limited = limit != 0 && limit < model.context_tokens;
  const int32_t most = is_limited ? limit : model.context_tokens;
  if (total <= most) {
    return OkStatus();
  }
  return FieldViolation(
      field,
      Concat(
          "has ",
          tokens,
          " tokens and the prompt ",
          prompt_tokens,
          ", together ",
          total,
          is_limited ? "; this server takes at most " : "; this model's context is ",
          most,
          "; shorten one of them by ",
          total - most
      )
  );
}

StatusOr<std::vector<std::vector<int32_t>>> ReadContinuations(
    const v1::ScoreRequest& request, const LoadedModel& model
) {
  const int texts = request.continuation_texts_size();
  const int token_lists = request.continuation_tokens_size();
  if ((texts > 0) == (token_lists > 0)) {
    return FieldViolation(
        "continuation_texts",
        texts > 0 ? "and continuation_tokens are both set; send one of them"
                  : "and continuation_tokens are both empty; send at least one continuation"
    );
  }
  RETURN_IF_ERROR(CheckCount(
      texts > 0 ? "continuation_texts" : "continuation_tokens",
      std::max(texts, token_lists),
      model.limits.max_continuations
  ));
  std::vector<std::vector<int32_t>> continuations;
  for (int i = 0; i < texts; ++i) {
    const EncodeOptions options{
        .add_bos = false, .parse_special = request.parse_special_tokens(), .continues_text = true};
    ASSIGN_OR_RETURN(
        continuations.emplace_back(),
        ReadText(
            Concat("continuation_texts[", i, "]"), request.continuation_texts(i), options, model
        )
    );
  }
  for (int i = 0; i < token_lists; ++i) {
    ASSIGN_OR_RETURN(
        continuations.emplace_back(),
        ReadTokenIds(
            Concat("continuation_tokens[", i, "].ids"), request.continuation_tokens(i), model
        )
    );
  }
  return continuations;
}

}  // namespace

StatusOr<ValidatedRequest> ValidateRequest(
    const v1::ScoreRequest& request, const LoadedModel& model
) {
  RETURN_IF_ERROR(CheckModelName(request.model(), model));
  RETURN_IF_ERROR(CheckRequestId(request.request_id()));
  ValidatedRequest valid;
  GenerationRequest& generation = valid.generation;
  if (request.has_top_logprobs()) {
    RETURN_IF_ERROR(CheckTopLogprobs(
        "top_logprobs",
        request.top_logprobs(),
        std::min(model.limits.max_top_logprobs, model.vocabulary_size)
    ));
    valid.prompt_top_logprobs = request.top_logprobs();
  }
  RETURN_IF_ERROR(ReadScheduling(request.scheduling(), generation));
  ASSIGN_OR_RETURN(generation.prompt, ReadPrompt(PromptFieldsOf(request), model));
  ASSIGN_OR_RETURN(generation.continuations, ReadContinuations(request, model));
  const char* const field =
      request.continuation_texts().empty() ? "continuation_tokens" : "continuation_texts";
  for (size_t i = 0; i < generation.continuations.size(); ++i) {
    RETURN_IF_ERROR(CheckLength(
        Concat(field, "[", i, "]"),
        generation.prompt.size(),
        generation.continuations[i].size(),
        model
    ));
  }
  // The likeliest token tells whether a continuation is what greedy decoding gives.
  generation.scoring = ScoringParameters{
      .first_token = static_cast<int32_t>(generation.prompt.size()),
      .top_logprobs = std::max(1, valid.prompt_top_logprobs)};
  valid.request_id = request.request_id();
  return valid;
}

}  // namespace switchyard
