#pragma once

#include "kernels/cuda/device.h"

// What the threads of a block do together. Blocks are whole warps.

namespace switchyard {

// The result of `combine` over one value of each thread: within the warps as a butterfly, then over
// the warps, ascending; every thread gets it. `scratch` has a place for each warp. A barrier only
// where there are several warps.
template <typename T, typename Combine>
__device__ __forceinline__ T BlockReduce(const Shared<T>& scratch, T value, Combine combine) {
  value = WarpReduce(value, combine);
  const int warps = static_cast<int>(blockDim.x) / kWarpLanes;
  if (warps == 1) {
    return value;
  }
  if (threadIdx.x % kWarpLanes == 0) {
    scratch[threadIdx.x / kWarpLanes] = value;
  }
  __syncthreads();
  value = scratch[0];
  for (int warp = 1; warp < warps; ++warp) {
    value = combine(value, T(scratch[warp]));
  }
  __syncthreads();
  return value;
}

template <typename T>
__device__ __forceinline__ T BlockSum(const Shared<T>& scratch, T value) {
  return BlockReduce(scratch, value, Sum());
}

template <typename T>
__device__ __forceinline__ T BlockMax(const Shared<T>& scratch, T value) {
  return BlockReduce(scratch, value, Larger());
}

}  // namespace switchyard
