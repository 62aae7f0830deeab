#include "server/validation/sampling_validation.h"

#include <algorithm>
#include <optional>
#include <string>

#include "server/validation/field_violation.h"

namespace switchyard {
namespace {

constexpr float kMaxLogitBias = 100;

struct Range {
  float least = 0;
  float most = 0;
  bool least_is_included = true;
  const char* remedy = "";
};

// Written so that NaN, which compares false with everything, is out of every range.
Status CheckRange(const std::string& field, float value, const Range& range) {
  const bool above = range.least_is_included ? value >= range.least : value > range.least;
  if (above && value <= range.most) {
    return OkStatus();
  }
  return FieldViolation(
      field,
      Concat(
          "is ",
          value,
          "; it must be a number in ",
          range.least_is_included ? "[" : "(",
          range.least,
          ", ",
          range.most,
          "]; ",
          range.remedy
      )
  );
}

Status CheckScalars(const SamplingParameters& sampling) {
  RETURN_IF_ERROR(CheckRange(
      "sampling.temperature",
      sampling.temperature,
      {.least = 0, .most = 100, .remedy = "0 is greedy, 1 the model's own distribution"}
  ));
  RETURN_IF_ERROR(CheckRange(
      "sampling.top_p",
      sampling.top_p,
      {.least = 0, .most = 1, .least_is_included = false, .remedy = "1 keeps every token"}
  ));
  RETURN_IF_ERROR(CheckRange(
      "sampling.min_p", sampling.min_p, {.least = 0, .most = 1, .remedy = "0 keeps every token"}
  ));
  RETURN_IF_ERROR(CheckRange(
      "sampling.typical_p",
      sampling.typical_p,
      {.least = 0, .most = 1, .least_is_included = false, .remedy = "1 keeps every token"}
  ));
  RETURN_IF_ERROR(CheckRange(
      "sampling.repetition_penalty",
      sampling.repetition_penalty,
      {.least = 0, .most = 100, .least_is_included = false, .remedy = "1 is none"}
  ));
  RETURN_IF_ERROR(CheckRange(
      "sampling.presence_penalty",
      sampling.presence_penalty,
      {.least = -100, .most = 100, .remedy = "0 is none"}
  ));
  return CheckRange(
      "sampling.frequency_penalty",
      sampling.frequency_penalty,
      {.least = -100, .most = 100, .remedy = "0 is none"}
  );
}

Status CheckTopK(const SamplingParameters& sampling, int32_t vocabulary_size) {
  if (sampling.top_k < 0 || sampling.top_k > vocabulary_size) {
    return FieldViolation(
        "sampling.top_k",
        Concat(
            "is ",
            sampling.top_k,
            "; it must be in [0, ",
            vocabulary_size,
            "], the vocabulary; 0 keeps every token"
        )
    );
  }
  return OkStatus();
}

Status ReadLogitBias(
    const v1::SamplingParameters& message, int32_t vocabulary_size, SamplingParameters& sampling
) {
  for (const auto& [token_id, bias] : message.logit_bias()) {
    const std::string field = Concat("sampling.logit_bias[", token_id, "]");
    if (token_id < 0 || token_id >= vocabulary_size) {
      return FieldViolation(
          field, Concat("is for no token; token ids are in [0, ", vocabulary_size, ")")
      );
    }
    RETURN_IF_ERROR(CheckRange(
        field,
        bias,
        {.least = -kMaxLogitBias, .most = kMaxLogitBias, .remedy = "-100 all but forbids a token"}
    ));
    sampling.logit_bias.emplace_back(token_id, bias);
  }
  // A map's order differs from run to run; the engine's work should not.
  std::sort(sampling.logit_bias.begin(), sampling.logit_bias.end());
  return OkStatus();
}

}  // namespace

StatusOr<SamplingParameters> ValidateSampling(
    const v1::SamplingParameters& message,
    const SamplingParameters& defaults,
    int32_t vocabulary_size
) {
  SamplingParameters sampling = defaults;
  // has_, never "is not 0": an explicit 0 is a value.
  if (message.has_temperature()) {
    sampling.temperature = message.temperature();
  }
  if (message.has_top_k()) {
    sampling.top_k = message.top_k();
  }
  if (message.has_top_p()) {
    sampling.top_p = message.top_p();
  }
  if (message.has_min_p()) {
    sampling.min_p = message.min_p();
  }
  if (message.has_typical_p()) {
    sampling.typical_p = message.typical_p();
  }
  if (message.has_repetition_penalty()) {
    sampling.repetition_penalty = message.repetition_penalty();
  }
  if (message.has_presence_penalty()) {
    sampling.presence_penalty = message.presence_penalty();
  }
  if (message.has_frequency_penalty()) {
    sampling.frequency_penalty = message.frequency_penalty();
  }
  if (message.has_seed()) {
    sampling.seed = message.seed();
  }
  RETURN_IF_ERROR(CheckScalars(sampling));
  RETURN_IF_ERROR(CheckTopK(sampling, vocabulary_size));
  RETURN_IF_ERROR(ReadLogitBias(message, vocabulary_size, sampling));
  return sampling;
}

Status CheckTopLogprobs(const std::string& field, int32_t top_logprobs, int32_t most) {
  if (top_logprobs >= 0 && top_logprobs <= most) {
    return OkStatus();
  }
  return FieldViolation(
      field,
      Concat(
          "is ", top_logprobs, "; it must be in [0, ", most, "]; 0 gives the chosen token's alone"
      )
  );
}

}  // namespace switchyard
