#pragma once

#include "kernels/tensor.h"

namespace switchyard {

// What a layer part reads: the residual stream after the norm in front of the part, and as it is.
// Most models read the first only; MoEUT takes values and feed-forward experts from the second.
// Post-norm models have no norm in front: both are the same.
struct LayerInput {
  TensorView normed;  // [tokens, model_dim]
  TensorView raw;     // [tokens, model_dim]
};

}  // namespace switchyard
