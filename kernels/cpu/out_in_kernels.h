#pragma once

#include "kernels/cpu/product.h"

// Products with matrices stored [out, in], where each output feature is one run of memory.
//
// Order of a sum: one vector of partial sums, lane l taking every element whose place in its block
// of two vectors is l, blocks ascending, the low half of a block before the high half; then the
// lanes are added pairwise, neighbours first. A bf16 block is split into its even and its odd
// elements, which costs one shift and one mask instead of shuffles, so inputs are split alike by
// PrepareOutInInput.

namespace switchyard {

// Columns and rows are tiled in registers. Reads the range of the matrix once for each 64 rows.
void OutInProduct(const ProductArgs& args, Columns columns);

// Inputs are padded with zeros to a multiple of this many floats.
inline constexpr int64_t kOutInPadding = 64;
void PrepareOutInInput(const WeightMatrix& matrix, const float* input, float* prepared);

}  // namespace switchyard
