#pragma once

// How a kernel gets at memory and at its neighbours: one set of names for two compilers. nvcc makes
// plain pointers and instructions of them; the host compiler takes them from the stand-in in
// tests/cuda_host, which checks every access.
//
//   Global<T>                  device memory with the number of elements it has
//   SHARED_ARRAY(T, name, n)   static shared memory; DYNAMIC_SHARED(T, name) what the launch gave
//   Shared<T>                  what both are passed as
//   LoadFour(memory, i)        four elements at once, i a multiple of four
//   WarpSum, WarpReduce, ...   over the 32 lanes; every lane gets the result
//   MultiplyAccumulate         one tensor-core step

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/cuda/combine.h"
#if defined(__CUDACC__)
#include "kernels/cuda/device_nvcc.h"
#else
#include <cuda_host_device.h>
#endif

namespace switchyard {

inline constexpr int kWarpLanes = 32;

// a * b + c, fused on the device and nowhere else: -fmad=false keeps nvcc from choosing for itself,
// so that two kernels that write the same sum get the same bits.
__device__ __forceinline__ float MultiplyAdd(float a, float b, float c) {
#if defined(__CUDA_ARCH__)
  return __fmaf_rn(a, b, c);
#else
  return a * b + c;
#endif
}

__device__ __forceinline__ bool IsFinite(float value) {
  constexpr uint32_t kExponent = 0x7f800000;
  return (BitsOfFloat(value) & kExponent) != kExponent;
}

}  // namespace switchyard
