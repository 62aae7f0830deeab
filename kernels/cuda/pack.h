#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/weight.h"

namespace switchyard {

// One matrix of a checkpoint, as it is there, to [out, padded_in] with zeros at the end of each
// row.
struct PackArgs {
  const void* source = nullptr;
  void* target = nullptr;
  WeightLayout layout = WeightLayout::kOutIn;
  int64_t in_features = 0;
  int64_t out_features = 0;
  int64_t padded_in = 0;
  int64_t element_bytes = 0;  // 2 or 4
};
void LaunchPack(const PackArgs& args, cudaStream_t stream);

}  // namespace switchyard
