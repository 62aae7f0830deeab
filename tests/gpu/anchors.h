#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "kernels/ops.h"

namespace switchyard {

// What the card can do at this moment, the yardsticks of everything else.

// Bytes per second, those read and those written together, of copies of `bytes` bytes from one
// place of the device to another.
StatusOr<double> CopyBandwidth(Ops& ops, int64_t bytes, int repeats);

struct MatrixRate {
  double flops_per_second = 0;
  // "cublas", or "switchyard" where there is none: then it says what the backend's own product
  // does, and no share of it is a verdict.
  std::string source;
};

// Of a product of two square BF16 matrices of this size.
StatusOr<MatrixRate> MeasureMatrixRate(Ops& ops, int64_t size, int repeats);

}  // namespace switchyard
