#pragma once

#include <cstdint>

#include "base/status.h"

namespace switchyard {

// Multiplications and additions per second of cuBLAS, for a square product of BF16 matrices with
// float32 sums and a BF16 result. UNAVAILABLE, with the reason, where there is no cuBLAS. `data`
// is memory of the device, for three matrices.
StatusOr<double> CublasRate(void* data, int64_t size, int repeats);

}  // namespace switchyard
