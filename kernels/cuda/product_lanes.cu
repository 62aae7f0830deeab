#include "kernels/cuda/product.h"
#include "kernels/cuda/view.h"

namespace switchyard {
namespace {

constexpr int kWarps = 4;
constexpr int kFeatures = 2;      // of a warp
constexpr int kLaneElements = 4;  // that a lane takes at once
constexpr int kManyRows = 8;
constexpr int64_t kMaxRowSplits = 256;

__device__ __forceinline__ float4 WidenFour(const Global<const float>& weight, int64_t index) {
  return LoadFour(weight, index);
}
__device__ __forceinline__ float4 WidenFour(const Global<const uint16_t>& weight, int64_t index) {
  const ushort4 four = LoadFour(weight, index);
  return float4{WidenF16(four.x), WidenF16(four.y), WidenF16(four.z), WidenF16(four.w)};
}

// Elements k .. k + 3 of an input row; zeros beyond its end.
__device__ __forceinline__ float4 InputFour(const ProductArgs& args, int64_t row, int64_t k) {
  const int64_t begin = row * args.in_features + k;
  if (k + kLaneElements <= args.in_features && args.in_features % kLaneElements == 0) {
    return LoadFour(args.input, begin);
  }
  const int64_t left = args.in_features - k;
  return float4{
      left > 0 ? args.input[begin] : 0.0F,
      left > 1 ? args.input[begin + 1] : 0.0F,
      left > 2 ? args.input[begin + 2] : 0.0F,
      left > 3 ? args.input[begin + 3] : 0.0F};
}

}  // namespace

// One warp: kFeatures features of kRows rows at a time.
template <typename Element, int kRows>
__global__ void __launch_bounds__(kWarps* kWarpLanes)
    ProductLanesKernel(ProductArgs args, Global<const Element> weight) {
  const int64_t expert = blockIdx.y;
  const RowRange rows = RowsOfExpert(args, expert);
  CountExpert(args, rows);
  const int lane = static_cast<int>(threadIdx.x) % kWarpLanes;
  const int warp = static_cast<int>(threadIdx.x) / kWarpLanes;
  const int64_t first_feature = (int64_t{blockIdx.x} * kWarps + warp) * kFeatures;
  if (first_feature >= args.out_features) {
    return;
  }
  int64_t weight_rows[kFeatures];
  for (int f = 0; f < kFeatures; ++f) {  // a feature too many repeats the last one
    const int64_t feature =
        first_feature + f < args.out_features ? first_feature + f : args.out_features - 1;
    weight_rows[f] = (expert * args.out_features + feature) * args.padded_in;
  }
  for (int64_t place = rows.begin + int64_t{blockIdx.z} * kRows; place < rows.end;
       place += int64_t{gridDim.z} * kRows) {
    int64_t assignments[kRows];
    int64_t input_rows[kRows];
#pragma unroll
    for (int r = 0; r < kRows; ++r) {  // and so does a row too many
      assignments[r] = AssignmentOf(args, place + r < rows.end ? place + r : rows.end - 1);
      input_rows[r] = assignments[r] / args.input_span;
    }
    float sums[kFeatures * kRows] = {};
    for (int64_t k = lane * kLaneElements; k < args.padded_in; k += kWarpLanes * kLaneElements) {
      float4 w[kFeatures];
#pragma unroll
      for (int f = 0; f < kFeatures; ++f) {
        w[f] = WidenFour(weight, weight_rows[f] + k);
      }
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        const float4 x = InputFour(args, input_rows[r], k);
#pragma unroll
        for (int f = 0; f < kFeatures; ++f) {
          float& sum = sums[f * kRows + r];
          sum = MultiplyAdd(w[f].x, x.x, sum);
          sum = MultiplyAdd(w[f].y, x.y, sum);
          sum = MultiplyAdd(w[f].z, x.z, sum);
          sum = MultiplyAdd(w[f].w, x.w, sum);
        }
      }
    }
    WarpSum(sums);
#pragma unroll
    for (int i = 0; i < kFeatures * kRows; ++i) {
      const int64_t feature = first_feature + i / kRows;
      if (lane == i && feature < args.out_features && place + i % kRows < rows.end) {
        WriteProduct(args, expert, assignments[i % kRows], feature, sums[i]);
      }
    }
  }
}

namespace {

template <typename Element, int kRows>
void LaunchLanes(const ProductArgs& args, const ProductLaunch& launch) {
  const Global<const Element> weight(
      static_cast<const Element*>(args.weight), args.experts * args.out_features * args.padded_in
  );
  const int64_t splits = DivideUp(launch.expected_rows, kRows);
  const dim3 grid{
      GridSize(DivideUp(args.out_features, kWarps * kFeatures)),
      GridSize(args.experts),
      GridSize(splits < 1 ? 1 : (splits < kMaxRowSplits ? splits : kMaxRowSplits))};
  Launch(
      ProductLanesKernel<Element, kRows>,
      grid,
      dim3{kWarps * kWarpLanes, 1, 1},
      0,
      launch.stream,
      args,
      weight
  );
}

template <typename Element>
void LaunchForRows(const ProductArgs& args, const ProductLaunch& launch) {
  if (launch.expected_rows <= 2) {
    LaunchLanes<Element, 1>(args, launch);
  } else {
    LaunchLanes<Element, kManyRows>(args, launch);
  }
}

}  // namespace

void LaunchF32Product(const ProductArgs& args, const ProductLaunch& launch) {
  LaunchForRows<float>(args, launch);
}

void LaunchF16Product(const ProductArgs& args, const ProductLaunch& launch) {
  LaunchForRows<uint16_t>(args, launch);
}

}  // namespace switchyard
