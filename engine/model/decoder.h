#pragma once

#include <memory>
#include <vector>

#include "engine/model/block.h"
#include "engine/model/weights.h"

namespace switchyard {

// A dense projection between the width of the embedding and that of the model; absent where both
// are equal.
struct Adapter {
  Weight weight;
  Weight bias;
};

// The parts of a model as a family builds them.
struct Decoder {
  Weight embedding;
  Adapter embedding_adapter;
  std::vector<std::unique_ptr<Block>> blocks;  // executed order
  NormWeights final_norm;                      // absent in models with the norms after the parts
  Adapter output_adapter;
  Weight head;
  Weight head_bias;  // may be absent
};

}  // namespace switchyard
