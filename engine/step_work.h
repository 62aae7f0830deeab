#pragma once

#include <vector>

#include "engine/block_id.h"
#include "engine/sequence.h"

namespace switchyard {

// A block whose content must be in another one before the step writes to it.
struct BlockCopy {
  BlockId from = {};
  BlockId to = {};
};

// What a step computes, and what is copied before it, in this order.
struct StepWork {
  std::vector<SequenceSlice> slices;
  std::vector<BlockCopy> copies;
};

}  // namespace switchyard
