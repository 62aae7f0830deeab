#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/cuda/device.h"

// Every product with a matrix or a stack of experts, dense ones too: a dense matrix is one expert
// that takes all rows in order.
//
// The order of a sum (the rule of kernels/ops.h) depends on the weight's dtype and its length only:
// - f32, f16: lane l of a warp sums the elements 4 l .. 4 l + 3 of every 128, ascending; then the
//   lanes are added as a butterfly.
// - bf16, on tensor cores: slices of kSliceElements elements; inside a slice the tensor core's own
//   order over steps of 16; then the slices, ascending. Activations are float32: a sum of three
//   bf16 numbers, exactly, and each takes part in a product of its own.

namespace switchyard {

inline constexpr int kSliceElements = 256;
inline constexpr int kMatrixBlock = 32;  // elements of a row that a warp takes at once

struct ProductArgs {
  const void* weight = nullptr;  // [experts, out_features, padded_in]
  int64_t experts = 1;
  int64_t in_features = 0;
  int64_t padded_in = 0;
  int64_t out_features = 0;

  Global<const float> input;      // [input rows, in_features]
  Global<float> out;              // [assignments, out_features]
  Global<const int32_t> order;    // absent: rows 0, 1, 2, ...
  Global<const int32_t> offsets;  // [experts + 1]; absent: one expert with all rows
  int64_t rows = 0;
  int64_t input_span = 1;  // assignment a reads input row a / input_span

  Global<const float> gates;        // by assignment; absent: 1
  Global<const float> expert_bias;  // [experts, out_features]
  Global<const float> bias;         // [out_features]

  Global<int64_t> bytes_read;  // adds what an expert that has rows costs; absent: not counted
  int64_t expert_bytes = 0;
};

struct RowRange {
  int64_t begin = 0;
  int64_t end = 0;
};

__device__ __forceinline__ RowRange RowsOfExpert(const ProductArgs& args, int64_t expert) {
  if (!args.offsets.exists()) {
    return {0, args.rows};
  }
  return {args.offsets[expert], args.offsets[expert + 1]};
}

__device__ __forceinline__ int64_t AssignmentOf(const ProductArgs& args, int64_t place) {
  return args.order.exists() ? args.order[place] : place;
}

__device__ __forceinline__ void WriteProduct(
    const ProductArgs& args, int64_t expert, int64_t assignment, int64_t feature, float sum
) {
  float value = sum;
  if (args.expert_bias.exists()) {
    value += args.expert_bias[expert * args.out_features + feature];
  }
  if (args.gates.exists()) {
    value *= args.gates[assignment];
  }
  if (args.bias.exists()) {
    value += args.bias[feature];
  }
  args.out[assignment * args.out_features + feature] = value;
}

__device__ __forceinline__ void CountExpert(const ProductArgs& args, const RowRange& rows) {
  const bool first = blockIdx.x == 0 && blockIdx.z == 0 && threadIdx.x == 0;
  if (first && args.bytes_read.exists() && rows.begin < rows.end) {
    AtomicAdd(args.bytes_read, 0, args.expert_bytes);
  }
}

// Queue the product on the stream. `expected_rows` is about how many rows an expert has; it chooses
// between kernels that give the same bits.
struct ProductLaunch {
  int64_t expected_rows = 0;
  cudaStream_t stream = nullptr;
};
void LaunchF32Product(const ProductArgs& args, const ProductLaunch& launch);
void LaunchF16Product(const ProductArgs& args, const ProductLaunch& launch);
// Requires: padded_in is a multiple of kMatrixBlock.
void LaunchBf16Product(const ProductArgs& args, const ProductLaunch& launch);

}  // namespace switchyard
