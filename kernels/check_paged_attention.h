#pragma once

#include "kernels/ops.h"

namespace switchyard {

// What every backend CHECKs on entry to PagedAttention: shapes and dtypes.
void CheckPagedAttentionShapes(const PagedAttentionArgs& args, TensorView out);

// The same, and that each sequence's tokens and keys fit its blocks (and its distance keys). Reads
// the offsets and lengths, so their memory must be the host's.
void CheckPagedAttention(const PagedAttentionArgs& args, TensorView out);

}  // namespace switchyard
