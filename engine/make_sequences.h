#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/request.h"
#include "engine/sequence.h"

namespace switchyard {

struct SequenceContext {
  int64_t context_tokens = 0;
  int32_t block_tokens = 0;
  Clock::time_point now;
};

// One sequence for each completion or continuation that the request asks for; the first has the
// others as followers. Requires: the request passed CheckRequest.
std::unique_ptr<Sequence> MakeSequences(
    RequestId id, GenerationRequest request, const SequenceContext& context
);

// The sequence from which the beams of request.beam_search will fork. Requires: the request passed
// CheckRequest.
std::unique_ptr<Sequence> MakeBeamSearch(
    RequestId id,
    GenerationRequest request,
    std::vector<int32_t> eos_token_ids,
    const SequenceContext& context
);

}  // namespace switchyard
