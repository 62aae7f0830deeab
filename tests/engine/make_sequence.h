#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/sequence.h"

namespace switchyard {

// A sequence with `prompt`, then `generated` already appended, for tests of what reads sequences.
struct SequenceSpec {
  std::vector<int32_t> prompt = {};
  std::vector<int32_t> generated = {};
  std::vector<int32_t> blocks = {};
  int32_t computed_tokens = 0;
  SamplingParameters sampling = {};
  StoppingParameters stopping = {};
  int64_t context_tokens = 100;
};

std::unique_ptr<Sequence> MakeSequence(const SequenceSpec& spec);

}  // namespace switchyard
