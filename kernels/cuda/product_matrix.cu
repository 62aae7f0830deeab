#include "kernels/cuda/product.h"
#include "kernels/cuda/split_float.h"
#include "kernels/cuda/view.h"

namespace switchyard {
namespace {

constexpr int kWarps = 8;
constexpr int kTileFeatures = 16;  // of one tensor-core step, and of a warp
constexpr int kTileRows = 8;
constexpr int kEight = 8;  // elements of one wide load
constexpr int kBlocksOfSlice = kSliceElements / kMatrixBlock;

constexpr int kWideFeatureWarps = 4;
constexpr int kWideRowWarps = kWarps / kWideFeatureWarps;
constexpr int kWideTiles = 4;  // of rows, for each warp
constexpr int kWideFeatures = kWideFeatureWarps * kTileFeatures;
constexpr int kWideRows = kWideRowWarps * kWideTiles * kTileRows;
constexpr int64_t kNarrowRowsLimit =
    16;  // above, the activations are worth keeping in shared memory
constexpr int64_t kMaxRowSplits = 64;

// Eight float32 numbers as kParts rows of eight bf16 numbers, packed in pairs.
struct SplitEight {
  uint4 parts[kParts];
};

__device__ __forceinline__ SplitEight Split(const float (&values)[kEight]) {
  uint32_t pairs[kParts][kEight / 2];
#pragma unroll
  for (int i = 0; i < kEight / 2; ++i) {
    uint32_t low[kParts];
    uint32_t high[kParts];
    SplitOne(values[2 * i], low);
    SplitOne(values[2 * i + 1], high);
#pragma unroll
    for (int p = 0; p < kParts; ++p) {
      pairs[p][i] = low[p] | high[p] << 16;
    }
  }
  SplitEight split;
#pragma unroll
  for (int p = 0; p < kParts; ++p) {
    split.parts[p] = uint4{pairs[p][0], pairs[p][1], pairs[p][2], pairs[p][3]};
  }
  return split;
}

// Elements k .. k + 7 of an input row; zeros beyond its end, and for no row (-1).
__device__ __forceinline__ void InputEight(
    const ProductArgs& args, int64_t row, int64_t k, float (&values)[kEight]
) {
  const int64_t begin = row * args.in_features + k;
  if (row >= 0 && k + kEight <= args.in_features && args.in_features % 4 == 0) {
    const float4 first = LoadFour(args.input, begin);
    const float4 second = LoadFour(args.input, begin + 4);
    values[0] = first.x;
    values[1] = first.y;
    values[2] = first.z;
    values[3] = first.w;
    values[4] = second.x;
    values[5] = second.y;
    values[6] = second.z;
    values[7] = second.w;
    return;
  }
#pragma unroll
  for (int i = 0; i < kEight; ++i) {
    values[i] = row >= 0 && k + i < args.in_features ? args.input[begin + i] : 0.0F;
  }
}

// Where lane 4 g + t stands in a tensor-core step: it holds features g and g + 8, row g of the
// inputs, rows 2 t and 2 t + 1 of the result, and, of every block of 32 elements, the eight that
// begin at 8 t. Two steps of 16 make a block: the first takes the lanes' lower four elements, the
// second their upper four.
struct LanePlace {
  int lane;
  int g;
  int t;
};

__device__ __forceinline__ LanePlace PlaceOfLane() {
  const int lane = static_cast<int>(threadIdx.x) % kWarpLanes;
  return {lane, lane / 4, lane % 4};
}

struct WeightBlock {
  uint4 upper;  // of feature g
  uint4 lower;  // of feature g + 8
};

__device__ __forceinline__ WeightBlock
LoadWeights(const Global<const uint16_t>& weight, const int64_t (&rows)[2], int64_t k) {
  return {LoadEight(weight, rows[0] + k), LoadEight(weight, rows[1] + k)};
}

// Adds one block of 32 elements: small parts first.
__device__ __forceinline__ void AddBlock(
    const WeightBlock& w, const SplitEight& x, float (&sums)[4]
) {
#pragma unroll
  for (int step = 0; step < 2; ++step) {
    const uint32_t a[4] = {
        step == 0 ? w.upper.x : w.upper.z,
        step == 0 ? w.lower.x : w.lower.z,
        step == 0 ? w.upper.y : w.upper.w,
        step == 0 ? w.lower.y : w.lower.w};
#pragma unroll
    for (int p = kParts - 1; p >= 0; --p) {
      const uint32_t b[2] = {
          step == 0 ? x.parts[p].x : x.parts[p].z, step == 0 ? x.parts[p].y : x.parts[p].w};
      MultiplyAccumulate(sums, a, b);
    }
  }
}

// The weight rows of the lane's two features; a feature too many repeats the last one.
__device__ __forceinline__ void WeightRows(
    const ProductArgs& args,
    int64_t expert,
    int64_t feature,
    const LanePlace& place,
    int64_t (&rows)[2]
) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int64_t wanted = feature + place.g + half * 8;
    const int64_t last = args.out_features - 1;
    rows[half] = (expert * args.out_features + (wanted < last ? wanted : last)) * args.padded_in;
  }
}

}  // namespace

// For few rows: a block takes 16 features of 8 rows, its warps different slices, so that all of a
// weight row is on its way at once.
__global__ void __launch_bounds__(kWarps* kWarpLanes)
    ProductNarrowKernel(ProductArgs args, Global<const uint16_t> weight) {
  SHARED_ARRAY(float, slices, kWarps* kTileFeatures* kTileRows);
  const int64_t expert = blockIdx.y;
  const RowRange rows = RowsOfExpert(args, expert);
  CountExpert(args, rows);
  const LanePlace lane = PlaceOfLane();
  const int warp = static_cast<int>(threadIdx.x) / kWarpLanes;
  const int64_t first_feature = int64_t{blockIdx.x} * kTileFeatures;
  int64_t weight_rows[2];
  WeightRows(args, expert, first_feature, lane, weight_rows);
  const auto slice_count = (args.padded_in + kSliceElements - 1) / kSliceElements;

  // Of the result, thread i < 128 adds up feature i / 8 of row i % 8.
  const int own = static_cast<int>(threadIdx.x);
  for (int64_t first = rows.begin + int64_t{blockIdx.z} * kTileRows; first < rows.end;
       first += int64_t{gridDim.z} * kTileRows) {
    const int64_t input_row =
        first + lane.g < rows.end ? AssignmentOf(args, first + lane.g) / args.input_span : -1;
    float total = 0;
    for (int64_t round = 0; round < slice_count; round += kWarps) {
      const int64_t slice = round + warp;
      if (slice < slice_count) {
        float sums[4] = {};
        const int64_t begin = slice * kSliceElements;
#pragma unroll 4
        for (int block = 0; block < kBlocksOfSlice; ++block) {
          const int64_t k = begin + block * kMatrixBlock + lane.t * kEight;
          if (begin + block * kMatrixBlock < args.padded_in) {
            const WeightBlock w = LoadWeights(weight, weight_rows, k);
            float x[kEight];
            InputEight(args, input_row, k, x);
            AddBlock(w, Split(x), sums);
          }
        }
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const int feature = lane.g + i / 2 * 8;
          const int row = lane.t * 2 + i % 2;
          slices[(warp * kTileFeatures + feature) * kTileRows + row] = sums[i];
        }
      }
      __syncthreads();
      if (own < kTileFeatures * kTileRows) {
        for (int64_t s = 0; s < kWarps && round + s < slice_count; ++s) {
          total += slices[s * kTileFeatures * kTileRows + own];
        }
      }
      __syncthreads();
    }
    const int64_t feature = first_feature + own / kTileRows;
    const int64_t place = first + own % kTileRows;
    if (own < kTileFeatures * kTileRows && feature < args.out_features && place < rows.end) {
      WriteProduct(args, expert, AssignmentOf(args, place), feature, total);
    }
  }
}

// For many rows: a block takes 64 features of 64 rows. The rows' activations are split once, in
// shared memory; every weight goes from global memory to the two warps that want it.
__global__ void __launch_bounds__(kWarps* kWarpLanes)
    ProductWideKernel(ProductArgs args, Global<const uint16_t> weight) {
  SHARED_ARRAY(uint16_t, inputs, kParts * kWideRows * kMatrixBlock);
  const int64_t expert = blockIdx.y;
  const RowRange rows = RowsOfExpert(args, expert);
  CountExpert(args, rows);
  const LanePlace lane = PlaceOfLane();
  const int warp = static_cast<int>(threadIdx.x) / kWarpLanes;
  const int64_t first_feature =
      int64_t{blockIdx.x} * kWideFeatures + warp % kWideFeatureWarps * kTileFeatures;
  const int warp_row = warp / kWideFeatureWarps * kWideTiles * kTileRows;
  int64_t weight_rows[2];
  WeightRows(args, expert, first_feature, lane, weight_rows);
  // Thread i brings the eight elements i % 4 of row i / 4.
  const int brought_row = static_cast<int>(threadIdx.x) / 4;
  const int brought_eight = static_cast<int>(threadIdx.x) % 4 * kEight;

  for (int64_t first = rows.begin + int64_t{blockIdx.z} * kWideRows; first < rows.end;
       first += int64_t{gridDim.z} * kWideRows) {
    const int64_t input_row = first + brought_row < rows.end
                                  ? AssignmentOf(args, first + brought_row) / args.input_span
                                  : -1;
    float totals[kWideTiles][4] = {};
    float sums[kWideTiles][4] = {};
    for (int64_t k = 0; k < args.padded_in; k += kMatrixBlock) {
      float x[kEight];
      InputEight(args, input_row, k + brought_eight, x);
      const SplitEight split = Split(x);
      const WeightBlock w = LoadWeights(weight, weight_rows, k + lane.t * kEight);
      __syncthreads();  // the last block has been used
#pragma unroll
      for (int p = 0; p < kParts; ++p) {
        StoreEight(
            inputs, (p * kWideRows + brought_row) * kMatrixBlock + brought_eight, split.parts[p]
        );
      }
      __syncthreads();
#pragma unroll
      for (int tile = 0; tile < kWideTiles; ++tile) {
        const int row = warp_row + tile * kTileRows + lane.g;
        SplitEight used;
#pragma unroll
        for (int p = 0; p < kParts; ++p) {
          used.parts[p] = LoadEight(inputs, (p * kWideRows + row) * kMatrixBlock + lane.t * kEight);
        }
        AddBlock(w, used, sums[tile]);
      }
      const bool slice_ends =
          (k + kMatrixBlock) % kSliceElements == 0 || k + kMatrixBlock >= args.padded_in;
      if (slice_ends) {
#pragma unroll
        for (int tile = 0; tile < kWideTiles; ++tile) {
#pragma unroll
          for (int i = 0; i < 4; ++i) {
            totals[tile][i] += sums[tile][i];
            sums[tile][i] = 0;
          }
        }
      }
    }
#pragma unroll
    for (int tile = 0; tile < kWideTiles; ++tile) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int64_t feature = first_feature + lane.g + i / 2 * 8;
        const int64_t place = first + warp_row + tile * kTileRows + lane.t * 2 + i % 2;
        if (feature < args.out_features && place < rows.end) {
          WriteProduct(args, expert, AssignmentOf(args, place), feature, totals[tile][i]);
        }
      }
    }
  }
}

void LaunchBf16Product(const ProductArgs& args, const ProductLaunch& launch) {
  const Global<const uint16_t> weight(
      static_cast<const uint16_t*>(args.weight), args.experts * args.out_features * args.padded_in
  );
  const bool narrow = launch.expected_rows <= kNarrowRowsLimit;
  const int64_t splits = DivideUp(launch.expected_rows, narrow ? kTileRows : kWideRows);
  const dim3 grid{
      GridSize(DivideUp(args.out_features, narrow ? kTileFeatures : kWideFeatures)),
      GridSize(args.experts),
      GridSize(splits < 1 ? 1 : (splits < kMaxRowSplits ? splits : kMaxRowSplits))};
  Launch(
      narrow ? ProductNarrowKernel : ProductWideKernel,
      grid,
      dim3{kWarps * kWarpLanes, 1, 1},
      0,
      launch.stream,
      args,
      weight
  );
}

}  // namespace switchyard
