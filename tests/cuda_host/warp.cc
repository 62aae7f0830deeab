#include "tests/cuda_host/warp.h"

#include <bit>

namespace switchyard::cuda_host {
namespace {

constexpr int kRows = 16;
constexpr int kColumns = 8;
constexpr int kDepth = 16;

float Low(uint32_t pair) {
  return std::bit_cast<float>(pair << 16);
}
float High(uint32_t pair) {
  return std::bit_cast<float>(pair & 0xffff0000U);
}

}  // namespace

// The fragment layout of the PTX manual: lane = 4 * g + t. a0: row g, columns 2t and 2t + 1; a1:
// row g + 8; a2 and a3: eight columns on. b0: rows 2t and 2t + 1 of column g; b1: eight rows on.
// d0, d1: row g, columns 2t and 2t + 1; d2, d3: row g + 8.
void MultiplyFragments(void* const* slots) {
  float a[kRows][kDepth];
  float b[kColumns][kDepth];
  for (int lane = 0; lane < kWarpThreads; ++lane) {
    const auto* fragments = static_cast<const MatrixFragments*>(slots[lane]);
    const int g = lane / 4;
    const int t = lane % 4;
    for (int i = 0; i < 4; ++i) {
      float* row = a[g + i % 2 * 8] + 2 * t + i / 2 * 8;
      row[0] = Low(fragments->a[i]);
      row[1] = High(fragments->a[i]);
    }
    for (int i = 0; i < 2; ++i) {
      float* column = b[g] + 2 * t + i * 8;
      column[0] = Low(fragments->b[i]);
      column[1] = High(fragments->b[i]);
    }
  }
  for (int lane = 0; lane < kWarpThreads; ++lane) {
    auto* fragments = static_cast<MatrixFragments*>(slots[lane]);
    for (int i = 0; i < 4; ++i) {
      const float* row = a[lane / 4 + i / 2 * 8];
      const float* column = b[lane % 4 * 2 + i % 2];
      float sum = fragments->d[i];
      for (int k = 0; k < kDepth; ++k) {
        sum += row[k] * column[k];
      }
      fragments->d[i] = sum;
    }
  }
}

}  // namespace switchyard::cuda_host
