#pragma once

// The host side of kernels/cuda/device.h: what kernels see under the stand-in.

#include <cuda_runtime.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "kernels/float16.h"
#include "tests/cuda_host/block_runner.h"
#include "tests/cuda_host/launch.h"
#include "tests/cuda_host/memory.h"
#include "tests/cuda_host/report.h"
#include "tests/cuda_host/views.h"
#include "tests/cuda_host/warp.h"

// The compiler's names are not ours to choose.
// NOLINTBEGIN(bugprone-reserved-identifier)
#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)

#define threadIdx (::switchyard::cuda_host::BlockRunner::Current()->index)
#define blockIdx (::switchyard::cuda_host::BlockRunner::Current()->runner->block_index())
#define blockDim (::switchyard::cuda_host::BlockRunner::Current()->runner->launch().block)
#define gridDim (::switchyard::cuda_host::BlockRunner::Current()->runner->launch().grid)

inline void __syncthreads() {
  ::switchyard::cuda_host::BlockRunner::Current()->runner->Barrier();
}
inline void __syncwarp() {
  ::switchyard::cuda_host::BlockRunner::Current()->runner->WarpTogether(nullptr, nullptr);
}
// NOLINTEND(bugprone-reserved-identifier)

// The address of the lambda's own variable tells one declaration from another.
#define SHARED_ARRAY(type, name, count)                                                \
  const ::switchyard::Shared<type> name = ::switchyard::cuda_host::StaticShared<type>( \
      [] {                                                                             \
        static char declaration;                                                       \
        return static_cast<const void*>(&declaration);                                 \
      }(),                                                                             \
      static_cast<int64_t>(count)                                                      \
  )
#define DYNAMIC_SHARED(type, name) \
  const ::switchyard::Shared<type> name = ::switchyard::cuda_host::DynamicShared<type>()

namespace switchyard {

inline float WidenF16(uint16_t bits) {
  return F16ToFloat(bits);
}
inline float FloatOfBits(uint32_t bits) {
  return std::bit_cast<float>(bits);
}
inline uint32_t BitsOfFloat(float value) {
  return std::bit_cast<uint32_t>(value);
}

inline int32_t PopulationCount(uint32_t bits) {
  return std::popcount(bits);
}

template <typename... Parameters, typename... Arguments>
void Launch(
    void (*kernel)(Parameters...),
    dim3 grid,
    dim3 block,
    size_t shared_bytes,
    cudaStream_t stream,
    Arguments... arguments
) {
  cuda_host::EnqueueLaunch(
      {.kernel = reinterpret_cast<const void*>(kernel),
       .grid = grid,
       .block = block,
       .dynamic_shared_bytes = shared_bytes,
       .stream = stream},
      [=] { kernel(arguments...); }
  );
}

template <typename... Parameters>
cudaError_t AllowSharedBytes(void (*kernel)(Parameters...), size_t bytes) {
  cuda_host::AllowDynamicShared(reinterpret_cast<const void*>(kernel), bytes);
  return cudaGetLastError();
}

}  // namespace switchyard
