#pragma once

#include <cstdint>

namespace switchyard {

// Float32, ascending: the order of every sum of products in this folder.
inline float Dot(const float* a, const float* b, int64_t count) {
  float sum = 0;
  for (int64_t i = 0; i < count; ++i) {
    sum += a[i] * b[i];
  }
  return sum;
}

}  // namespace switchyard
