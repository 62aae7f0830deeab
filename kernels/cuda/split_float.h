#pragma once

#include "kernels/cuda/device.h"

// Float32 on tensor cores that take bf16: every number is a sum of three bf16 numbers, exactly, and
// the parts take part in products of their own.

namespace switchyard {

inline constexpr int kParts = 3;

// Taking the upper half of the bits leaves a rest that float32 holds exactly; after three times
// nothing is left.
__device__ __forceinline__ void SplitOne(float value, uint32_t (&parts)[kParts]) {
#pragma unroll
  for (int p = 0; p < kParts; ++p) {
    const uint32_t upper = BitsOfFloat(value) & 0xffff0000U;
    parts[p] = upper >> 16;
    value -= FloatOfBits(upper);
  }
}

// Four elements of a row or column of a tensor-core step: of each part the pairs (0, 1) and (2, 3).
struct SplitFour {
  uint32_t parts[kParts][2];
};

__device__ __forceinline__ SplitFour Split(const float (&values)[4]) {
  SplitFour split;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    uint32_t low[kParts];
    uint32_t high[kParts];
    SplitOne(values[2 * i], low);
    SplitOne(values[2 * i + 1], high);
#pragma unroll
    for (int p = 0; p < kParts; ++p) {
      split.parts[p][i] = low[p] | high[p] << 16;
    }
  }
  return split;
}

// Adds a product of 16 rows and 8 columns over 16 elements. Lane 4 g + t brings the elements 4 t ..
// 4 t + 3 of the rows g (`upper`) and g + 8 (`lower`) and of column g, and gets the sums of rows g
// and g + 8 with the columns 2 t and 2 t + 1. Products of small parts come first; those that are
// left out are less than 2^-22 of the largest.
__device__ __forceinline__ void MultiplyAccumulate(
    float (&sums)[4], const SplitFour& upper, const SplitFour& lower, const SplitFour& column
) {
#pragma unroll
  for (int rank = kParts - 1; rank >= 0; --rank) {
#pragma unroll
    for (int p = 0; p <= rank; ++p) {
      const uint32_t a[4] = {
          upper.parts[p][0], lower.parts[p][0], upper.parts[p][1], lower.parts[p][1]};
      const uint32_t b[2] = {column.parts[rank - p][0], column.parts[rank - p][1]};
      MultiplyAccumulate(sums, a, b);
    }
  }
}

}  // namespace switchyard
