#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "engine/request.h"
#include "switchyard/v1/inference.pb.h"

namespace switchyard {

// `defaults` with the fields of `message` that are there. INVALID_ARGUMENT (a FieldViolation under
// "sampling.") for a value that is no number or out of the range in inference.proto. The seed stays
// at the default when the message has none.
StatusOr<SamplingParameters> ValidateSampling(
    const v1::SamplingParameters& message,
    const SamplingParameters& defaults,
    int32_t vocabulary_size
);

// A FieldViolation when not 0 to `most` of the likeliest tokens are asked for.
Status CheckTopLogprobs(const std::string& field, int32_t top_logprobs, int32_t most);

}  // namespace switchyard
