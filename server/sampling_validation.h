#pragma once

#include <cstdint>
#include <optional>

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

// The same for output.top_logprobs, of which there may be 0 to `most`.
StatusOr<std::optional<int32_t>> ValidateTopLogprobs(
    const v1::OutputOptions& message, int32_t most
);

}  // namespace switchyard
