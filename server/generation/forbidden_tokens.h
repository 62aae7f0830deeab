#pragma once

#include <cstdint>

#include "base/status.h"
#include "engine/request.h"
#include "server/loaded_model.h"
#include "switchyard/v1/inference.pb.h"

namespace switchyard {

inline constexpr int32_t kMaxNoRepeatNgramSize = 256;

// Fills in what of `sampling` forbids tokens: no_repeat_ngram_tokens, which stays as it is when the
// message has none, bad_words and allowed_token_ids. Tokenizes bad words. INVALID_ARGUMENT (a
// FieldViolation under "sampling.") for a value that breaks a limit in inference.proto.
Status ReadForbiddenTokens(
    const v1::SamplingParameters& message, const LoadedModel& model, SamplingParameters& sampling
);

}  // namespace switchyard
