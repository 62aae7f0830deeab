#include "server/validation/request_validation.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "server/generation/forbidden_tokens.h"
#include "server/validation/completions_validation.h"
#include "server/validation/field_violation.h"
#include "server/validation/prompt_validation.h"
#include "server/validation/sampling_validation.h"
#include "text/utf8.h"

namespace switchyard {
namespace {

constexpr size_t kMaxStopStringBytes = 256;
constexpr int kMaxStopTokenIds = 64;

Status CheckStopString(const std::string& field, const std::string& text) {
  if (text.empty() || text.size() > kMaxStopStringBytes) {
    return FieldViolation(
        field,
        Concat(
            "has ",
            text.size(),
            " bytes; a stop string has 1 to ",
            kMaxStopStringBytes,
            text.empty() ? "; leave it out" : "; shorten it"
        )
    );
  }
  const std::optional<size_t> invalid = FindInvalidUtf8(text);
  return invalid ? FieldViolation(field, Concat("is not valid UTF-8 at byte ", *invalid))
                 : OkStatus();
}

Status CheckStops(const v1::StoppingParameters& stopping, const LoadedModel& model) {
  RETURN_IF_ERROR(CheckCount(
      "stopping.stop_strings", stopping.stop_strings_size(), model.limits.max_stop_strings
  ));
  for (int i = 0; i < stopping.stop_strings_size(); ++i) {
    RETURN_IF_ERROR(
        CheckStopString(Concat("stopping.stop_strings[", i, "]"), stopping.stop_strings(i))
    );
  }
  if (!stopping.stop_strings().empty()) {
    RETURN_IF_ERROR(CheckHasTokenizer("stopping.stop_strings", model));
  }
  RETURN_IF_ERROR(
      CheckCount("stopping.stop_token_ids", stopping.stop_token_ids_size(), kMaxStopTokenIds)
  );
  for (int i = 0; i < stopping.stop_token_ids_size(); ++i) {
    RETURN_IF_ERROR(CheckTokenId(
        Concat("stopping.stop_token_ids[", i, "]"),
        stopping.stop_token_ids(i),
        model.vocabulary_size
    ));
  }
  return OkStatus();
}

// What the server takes, which may be less than what fits the model.
Status CheckPromptLimit(
    const v1::GenerateRequest& request, int64_t prompt_tokens, const RequestLimits& limits
) {
  if (limits.max_prompt_tokens == 0 || prompt_tokens <= limits.max_prompt_tokens) {
    return OkStatus();
  }
  return FieldViolation(
      PromptFieldName(PromptFieldsOf(request)),
      Concat(
          "has ",
          prompt_tokens,
          " tokens; this server takes prompts of at most ",
          limits.max_prompt_tokens,
          "; shorten the prompt by ",
          prompt_tokens - limits.max_prompt_tokens
      )
  );
}

// max_tokens, given or derived, so that prompt and completion fit the context.
StatusOr<int32_t> ReadMaxTokens(
    const v1::GenerateRequest& request, int64_t prompt_tokens, const LoadedModel& model
) {
  RETURN_IF_ERROR(CheckPromptLimit(request, prompt_tokens, model.limits));
  const int64_t context = model.context_tokens;
  const int64_t left = context - prompt_tokens;
  if (left < 1) {
    return FieldViolation(
        PromptFieldName(PromptFieldsOf(request)),
        Concat(
            "has ",
            prompt_tokens,
            " tokens; this model's context is ",
            context,
            " tokens, one of them for the completion; shorten the prompt by ",
            1 - left
        )
    );
  }
  const int64_t most = model.limits.max_tokens == 0 ? context : model.limits.max_tokens;
  if (!request.stopping().has_max_tokens()) {
    return static_cast<int32_t>(std::min({left, most, int64_t{model.defaults.max_tokens}}));
  }
  const int64_t wanted = request.stopping().max_tokens();
  if (wanted < 1) {
    return FieldViolation(
        "stopping.max_tokens",
        Concat("is ", wanted, "; it must be at least 1; leave it out for the model's default")
    );
  }
  if (model.limits.max_tokens != 0 && wanted > most) {
    return FieldViolation(
        "stopping.max_tokens",
        Concat("is ", wanted, "; this server generates at most ", most, " for a request; lower it")
    );
  }
  if (wanted > left) {
    return FieldViolation(
        "stopping.max_tokens",
        Concat(
            "is ",
            wanted,
            " and the prompt has ",
            prompt_tokens,
            " tokens, together ",
            wanted + prompt_tokens,
            "; this model's context is ",
            context,
            "; lower it to ",
            left,
            " or shorten the prompt by ",
            wanted - left
        )
    );
  }
  return static_cast<int32_t>(wanted);
}

StatusOr<StoppingParameters> ReadStopping(
    const v1::GenerateRequest& request, int64_t prompt_tokens, const LoadedModel& model
) {
  const v1::StoppingParameters& message = request.stopping();
  StoppingParameters stopping;
  ASSIGN_OR_RETURN(stopping.max_tokens, ReadMaxTokens(request, prompt_tokens, model));
  stopping.min_tokens = message.min_tokens();
  if (stopping.min_tokens < 0 || stopping.min_tokens > stopping.max_tokens) {
    return FieldViolation(
        "stopping.min_tokens",
        Concat(
            "is ",
            stopping.min_tokens,
            "; it must be in [0, ",
            stopping.max_tokens,
            "], the most that this request generates; lower it or raise stopping.max_tokens"
        )
    );
  }
  stopping.ignore_eos = message.ignore_eos();
  stopping.stop_token_ids.assign(message.stop_token_ids().begin(), message.stop_token_ids().end());
  if (!stopping.ignore_eos) {
    stopping.stop_token_ids.insert(
        stopping.stop_token_ids.end(),
        model.extra_eos_token_ids.begin(),
        model.extra_eos_token_ids.end()
    );
  }
  return stopping;
}

Status ReadLogprobs(
    const v1::OutputOptions& output, const LoadedModel& model, ValidatedRequest& valid
) {
  const int32_t most = std::min(model.limits.max_top_logprobs, model.vocabulary_size);
  if (output.has_top_logprobs()) {
    RETURN_IF_ERROR(CheckTopLogprobs("output.top_logprobs", output.top_logprobs(), most));
    valid.generation.sampling.top_logprobs = output.top_logprobs();
  }
  if (output.has_prompt_top_logprobs()) {
    const int32_t tops = output.prompt_top_logprobs();
    RETURN_IF_ERROR(CheckTopLogprobs("output.prompt_top_logprobs", tops, most));
    valid.prompt_top_logprobs = tops;
    valid.generation.scoring = ScoringParameters{.top_logprobs = tops};
  }
  return OkStatus();
}

// Experts that are chosen for a token, all routers together.
int64_t ChoicesPerToken(const v1::GetModelInfoResponse& info) {
  int64_t choices = 0;
  for (const v1::RouterInfo& router : info.routers()) {
    choices += router.experts() > 1 ? int64_t{router.heads()} * router.top_k() : 0;
  }
  return choices;
}

// Asked for before anything is computed, so that nobody pays for a trace that is too large.
// Requires: everything else of the request was read.
Status ReadRouting(
    const v1::OutputOptions& output, const LoadedModel& model, GenerationRequest& generation
) {
  constexpr int64_t kBytesPerChoice = 8;
  if (!output.routing()) {
    return OkStatus();
  }
  const auto prompt = static_cast<int64_t>(generation.prompt.size());
  const int64_t tokens = generation.completions * (prompt + generation.stopping.max_tokens);
  const int64_t choices = std::max<int64_t>(1, ChoicesPerToken(model.info));
  const int64_t most = model.limits.max_trace_bytes / (choices * kBytesPerChoice);
  if (tokens > most) {
    return FieldViolation(
        "output.routing",
        Concat(
            "is asked for ",
            generation.completions,
            generation.completions == 1 ? " completion" : " completions",
            " of a prompt of ",
            prompt,
            " tokens and at most ",
            generation.stopping.max_tokens,
            " more, together ",
            tokens,
            "; this server traces at most ",
            most,
            " tokens of this model (--max-trace-bytes ",
            model.limits.max_trace_bytes,
            ", ",
            kBytesPerChoice,
            " for each of the ",
            choices,
            " experts of a token); lower stopping.max_tokens or n, or shorten the prompt"
        )
    );
  }
  generation.trace_routing = true;
  return OkStatus();
}

}  // namespace

Status CheckModelName(const std::string& name, const LoadedModel& model) {
  return name.empty() || name == model.name ? OkStatus()
                                            : NotFound(
                                                  "model \"",
                                                  name,
                                                  "\" is not here; this server has \"",
                                                  model.name,
                                                  "\"; send that or nothing"
                                              );
}

Status CheckHasTokenizer(const std::string& field, const LoadedModel& model) {
  return model.tokenizer != nullptr
             ? OkStatus()
             : FieldViolation(
                   field, "needs a tokenizer, and this model's folder has none; send token ids"
               );
}

StatusOr<ValidatedRequest> ValidateRequest(
    const v1::GenerateRequest& request, const LoadedModel& model
) {
  RETURN_IF_ERROR(CheckModelName(request.model(), model));
  RETURN_IF_ERROR(CheckRequestId(request.request_id()));
  const int32_t vocabulary_size = model.vocabulary_size;

  ValidatedRequest valid;
  GenerationRequest& generation = valid.generation;
  RETURN_IF_ERROR(CheckCount(
      "sampling.logit_bias", request.sampling().logit_bias_size(), model.limits.max_logit_bias
  ));
  ASSIGN_OR_RETURN(
      generation.sampling,
      ValidateSampling(request.sampling(), model.defaults.sampling, vocabulary_size)
  );
  RETURN_IF_ERROR(ReadForbiddenTokens(request.sampling(), model, generation.sampling));
  RETURN_IF_ERROR(ReadLogprobs(request.output(), model, valid));
  RETURN_IF_ERROR(CheckStops(request.stopping(), model));
  ASSIGN_OR_RETURN(generation.prompt, ReadPrompt(PromptFieldsOf(request), model));
  ASSIGN_OR_RETURN(
      generation.stopping,
      ReadStopping(request, static_cast<int64_t>(generation.prompt.size()), model)
  );

  RETURN_IF_ERROR(ReadScheduling(request.scheduling(), generation));
  RETURN_IF_ERROR(ReadCompletions(request, model, valid));
  RETURN_IF_ERROR(ReadRouting(request.output(), model, generation));
  valid.request_id = request.request_id();
  valid.has_seed = request.sampling().has_seed();
  valid.stop_strings.assign(
      request.stopping().stop_strings().begin(), request.stopping().stop_strings().end()
  );
  valid.include_stop = request.stopping().include_stop();
  valid.echo_prompt_tokens = request.output().echo_prompt_tokens();
  return valid;
}

}  // namespace switchyard
