#include "server/validation/completions_validation.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "server/validation/field_violation.h"

namespace switchyard {
namespace {

constexpr float kMaxLengthPenalty = 10;

Status CheckCompletions(const std::string& field, int32_t count, int32_t least, int32_t most) {
  if (count >= least && count <= most) {
    return OkStatus();
  }
  return FieldViolation(
      field, Concat("is ", count, "; it must be in [", least, ", ", most, "] on this server")
  );
}

// A search follows the model's own probabilities; what would change them is refused, not ignored.
Status CheckBeamsAlone(const v1::GenerateRequest& request) {
  if (request.has_best_of()) {
    return FieldViolation("best_of", "and beam_search are both set; n picks the best of the beams");
  }
  if (!request.stopping().stop_strings().empty()) {
    return FieldViolation(
        "stopping.stop_strings", "and beam_search are both set; use stop_token_ids"
    );
  }
  if (request.output().top_logprobs() > 0) {
    return FieldViolation(
        "output.top_logprobs", "is over 0 beside beam_search; 0 gives the chosen tokens'"
    );
  }
  if (request.output().routing()) {
    return FieldViolation(
        "output.routing", "and beam_search are both set; beams give up what they computed"
    );
  }
  if (request.sampling().ByteSizeLong() > 0) {
    return FieldViolation("sampling", "and beam_search are both set; a search does not sample");
  }
  return OkStatus();
}

Status ReadBeamSearch(
    const v1::GenerateRequest& request, const LoadedModel& model, GenerationRequest& generation
) {
  RETURN_IF_ERROR(CheckBeamsAlone(request));
  const v1::BeamSearch& message = request.beam_search();
  const int32_t most = std::min(
      model.limits.max_completions,
      std::min(model.engine_limits.max_running, model.engine_limits.max_step_tokens)
  );
  // Also when --max-running leaves fewer beams than completions are allowed.
  RETURN_IF_ERROR(CheckCompletions("n", generation.completions, 1, most));
  RETURN_IF_ERROR(
      CheckCompletions("beam_search.width", message.width(), generation.completions, most)
  );
  const float penalty = message.has_length_penalty() ? message.length_penalty() : 1;
  if (!(std::abs(penalty) <= kMaxLengthPenalty)) {
    return FieldViolation(
        "beam_search.length_penalty",
        Concat(
            "is ",
            penalty,
            "; it must be a number in [",
            -kMaxLengthPenalty,
            ", ",
            kMaxLengthPenalty,
            "]; 1 divides by the length"
        )
    );
  }
  const std::optional<int32_t> top_logprobs = generation.sampling.top_logprobs;
  generation.sampling = SamplingParameters{};
  generation.sampling.top_logprobs = top_logprobs;
  generation.beam_search = BeamParameters{.width = message.width(), .length_penalty = penalty};
  return OkStatus();
}

}  // namespace

Status ReadCompletions(
    const v1::GenerateRequest& request, const LoadedModel& model, ValidatedRequest& valid
) {
  const int32_t most = model.limits.max_completions;
  GenerationRequest& generation = valid.generation;
  if (request.has_n()) {
    RETURN_IF_ERROR(CheckCompletions("n", request.n(), 1, most));
    generation.completions = request.n();
  }
  if (request.has_beam_search()) {
    return ReadBeamSearch(request, model, generation);
  }
  if (request.has_best_of()) {
    RETURN_IF_ERROR(CheckCompletions("best_of", request.best_of(), generation.completions, most));
    valid.best = generation.completions;
    generation.completions = request.best_of();
  }
  return OkStatus();
}

}  // namespace switchyard
