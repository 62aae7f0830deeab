#pragma once

#include <bit>
#include <cstdint>

#include "kernels/tensor.h"

// The two 16-bit float formats of checkpoints, as bit patterns. Widening is exact; narrowing rounds
// to the nearest value, ties to even, and turns every NaN into a quiet one of the same sign.

namespace switchyard {

inline float Bf16ToFloat(uint16_t bits) {
  return std::bit_cast<float>(uint32_t{bits} << 16);
}
uint16_t FloatToBf16(float value);

float F16ToFloat(uint16_t bits);
uint16_t FloatToF16(float value);

// out[i] = source[begin + i * stride], widened, for i in 0..count-1. Requires: source is f32, f16
// or bf16 and holds these elements.
struct StridedRange {
  int64_t begin = 0;
  int64_t stride = 1;
  int64_t count = 0;
};
void Widen(TensorView source, const StridedRange& range, float* out);

}  // namespace switchyard
