#pragma once

// The device side of kernels/cuda/device.h. Include that one.

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/tensor.h"

#define SHARED_ARRAY(type, name, count) __shared__ alignas(16) type name[count]
#define DYNAMIC_SHARED(type, name)                                           \
  extern __shared__ __align__(16) unsigned char switchyard_dynamic_shared[]; \
  type* name = reinterpret_cast<type*>(switchyard_dynamic_shared)

namespace switchyard {

template <typename T>
class Global {
 public:
  Global() = default;
  // The count is for the stand-in.
  __host__ __device__ Global(T* data, int64_t /*count*/) : data_(data) {}

  __device__ T& operator[](int64_t index) const { return data_[index]; }
  __device__ Global From(int64_t index) const { return Global(data_ + index, 0); }
  __host__ __device__ bool exists() const { return data_ != nullptr; }
  __device__ T* data() const { return data_; }

 private:
  T* data_ = nullptr;
};

template <typename T>
__device__ __forceinline__ Global<const T> ConstView(const Global<T>& memory) {
  return Global<const T>(memory.data(), 0);
}

template <typename T>
using Shared = T*;

__device__ __forceinline__ float4 LoadFour(const Global<const float>& memory, int64_t index) {
  return *reinterpret_cast<const float4*>(memory.data() + index);
}
__device__ __forceinline__ float4 LoadFour(const Global<float>& memory, int64_t index) {
  return *reinterpret_cast<const float4*>(memory.data() + index);
}
__device__ __forceinline__ ushort4 LoadFour(const Global<const uint16_t>& memory, int64_t index) {
  return *reinterpret_cast<const ushort4*>(memory.data() + index);
}
// Eight 16-bit elements; the index is a multiple of eight.
__device__ __forceinline__ uint4 LoadEight(const Global<const uint16_t>& memory, int64_t index) {
  return __ldg(reinterpret_cast<const uint4*>(memory.data() + index));
}
__device__ __forceinline__ uint4 LoadEight(Shared<uint16_t> memory, int64_t index) {
  return *reinterpret_cast<const uint4*>(memory + index);
}
__device__ __forceinline__ void StoreEight(Shared<uint16_t> memory, int64_t index, uint4 value) {
  *reinterpret_cast<uint4*>(memory + index) = value;
}

__device__ __forceinline__ void AtomicAdd(Shared<int32_t> memory, int64_t index, int32_t value) {
  atomicAdd(memory + index, value);
}
__device__ __forceinline__ void AtomicAdd(Shared<int64_t> memory, int64_t index, int64_t value) {
  atomicAdd(
      reinterpret_cast<unsigned long long*>(memory + index), static_cast<unsigned long long>(value)
  );
}

__device__ __forceinline__ void AtomicAdd(
    const Global<int64_t>& memory, int64_t index, int64_t value
) {
  atomicAdd(
      reinterpret_cast<unsigned long long*>(memory.data() + index),
      static_cast<unsigned long long>(value)
  );
}

__device__ __forceinline__ float WidenF16(uint16_t bits) {
  return __half2float(__ushort_as_half(bits));
}
__device__ __forceinline__ float FloatOfBits(uint32_t bits) {
  return __uint_as_float(bits);
}
__device__ __forceinline__ uint32_t BitsOfFloat(float value) {
  return __float_as_uint(value);
}

__device__ __forceinline__ int32_t PopulationCount(uint32_t bits) {
  return __popc(bits);
}

// Every lane's value of the lane `lane ^ mask`.
template <typename T>
__device__ __forceinline__ T ShuffleXor(T value, int mask) {
  return __shfl_xor_sync(0xffffffffU, value, mask);
}
template <typename T>
__device__ __forceinline__ T ShuffleFrom(T value, int lane) {
  return __shfl_sync(0xffffffffU, value, lane);
}
__device__ __forceinline__ uint32_t Ballot(bool vote) {
  return __ballot_sync(0xffffffffU, vote);
}

// `combine` over the lanes' values, in the order of a butterfly: 16, 8, 4, 2, 1.
template <typename T, typename Combine>
__device__ __forceinline__ T WarpReduce(T value, Combine combine) {
#pragma unroll
  for (int mask = 16; mask > 0; mask /= 2) {
    value = combine(value, __shfl_xor_sync(0xffffffffU, value, mask));
  }
  return value;
}

// The sums over the lanes of each of the values, in the same order.
template <typename T, int kCount>
__device__ __forceinline__ void WarpSum(T (&values)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    values[i] = WarpReduce(values[i], Sum());
  }
}

// d += a * b for a 16 x 16 tile a and a 16 x 8 tile b of bf16 pairs, in the fragment layout of
// mma.m16n8k16.
__device__ __forceinline__ void MultiplyAccumulate(
    float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]
) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1])
  );
}

// Launch(Kernel, grid, block, shared_bytes, stream, arguments...)
template <typename... Parameters, typename... Arguments>
void Launch(
    void (*kernel)(Parameters...),
    dim3 grid,
    dim3 block,
    size_t shared_bytes,
    cudaStream_t stream,
    Arguments... arguments
) {
  kernel<<<grid, block, shared_bytes, stream>>>(arguments...);
}

template <typename... Parameters>
cudaError_t AllowSharedBytes(void (*kernel)(Parameters...), size_t bytes) {
  return cudaFuncSetAttribute(
      kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes)
  );
}

}  // namespace switchyard
