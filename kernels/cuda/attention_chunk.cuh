#pragma once

#include "kernels/cuda/attention_chunk.h"
#include "kernels/cuda/split_float.h"

namespace switchyard {

// One row of keys or values of the cache, for the position of a sequence.
__device__ __forceinline__ int64_t
CacheRow(const AttentionArgs& args, const QueryTile& tile, int64_t position, int64_t head) {
  const int64_t block = args.tables[tile.sequence * args.max_blocks + position / args.block_tokens];
  return (block * args.block_tokens + position % args.block_tokens) * args.heads + head;
}

// Brings keys or values [first, first + kTileKeys) into shared memory; zeros from `end` on, so that
// what the cache holds there does no harm.
__device__ __forceinline__ void StageRows(
    const AttentionArgs& args,
    const QueryTile& tile,
    int64_t head,
    const Global<const float>& cache,
    int64_t dim,
    int64_t first,
    int64_t end,
    const Shared<float>& staged
) {
  const int lane = static_cast<int>(threadIdx.x) % kWarpLanes;
  for (int key = static_cast<int>(threadIdx.x) / kWarpLanes; key < kTileKeys;
       key += kAttentionWarps) {
    const int64_t position = first + key;
    const bool exists = position < end;
    const int64_t begin = exists ? CacheRow(args, tile, position, head) * dim : 0;
    for (int64_t d = lane; d < dim; d += kWarpLanes) {
      staged[key * (dim + 1) + d] = exists ? cache[begin + d] : 0.0F;
    }
  }
}

// Reads the tile's queries into shared memory. Ends with a barrier.
__device__ __forceinline__ void LoadQueries(
    const AttentionArgs& args, const QueryTile& tile, int64_t head, const AttentionMemory& memory
) {
  for (int64_t i = threadIdx.x; i < tile.rows * args.key_dim; i += kAttentionThreads) {
    const int64_t row = RowOfOutput(args, tile, i / args.key_dim, head);
    memory.query[i] = args.query[row * args.key_dim + i % args.key_dim];
  }
  __syncthreads();
}

// Products on tensor cores: 16 keys or channels by 8 rows. A warp takes one of them at a time.
inline constexpr int kStepRows = 16;
inline constexpr int kStepColumns = 8;
inline constexpr int kStepElements = 16;

// Where lane 4 g + t stands in them.
struct StepLane {
  int g;
  int t;
};

__device__ __forceinline__ StepLane LaneOfStep() {
  const int lane = static_cast<int>(threadIdx.x) % kWarpLanes;
  return {lane / 4, lane % 4};
}

// Elements `first` .. first + 3 that are `stride` apart; zeros from `count` on.
__device__ __forceinline__ SplitFour
FourOf(const Shared<float>& memory, int64_t begin, int64_t stride, int64_t first, int64_t count) {
  float values[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    values[i] = first + i < count ? float(memory[begin + (first + i) * stride]) : 0.0F;
  }
  return Split(values);
}

// What the distance between a query and a key adds to their product.
__device__ __forceinline__ float DistanceTerm(
    const AttentionArgs& args,
    int64_t distance,
    int64_t head,
    const Shared<float>& query,
    int64_t query_begin
) {
  const int64_t begin = (distance * args.heads + head) * args.key_dim;
  float sum = 0;
  for (int64_t d = 0; d < args.key_dim; ++d) {
    sum = MultiplyAdd(query[query_begin + d], args.distance_keys[begin + d], sum);
  }
  return sum;
}

// The logits of kTileKeys staged keys, of which the first is key `first`.
__device__ __forceinline__ void TileLogits(
    const AttentionArgs& args,
    const QueryTile& tile,
    int64_t head,
    int64_t first,
    int64_t chunk_begin,
    const AttentionMemory& memory
) {
  constexpr int kKeySteps = kTileKeys / kStepRows;
  const StepLane lane = LaneOfStep();
  const int64_t steps = (tile.rows + kStepColumns - 1) / kStepColumns * kKeySteps;
  for (int64_t step = threadIdx.x / kWarpLanes; step < steps; step += kAttentionWarps) {
    const int64_t key_begin = step % kKeySteps * kStepRows + lane.g;
    const int64_t row_begin = step / kKeySteps * kStepColumns;
    const int64_t stride = args.key_dim + 1;
    // A row too many is one of zeros.
    const int64_t query_end = row_begin + lane.g < tile.rows ? args.key_dim : 0;
    float sums[4] = {};
    for (int64_t d = lane.t * 4; d < args.key_dim + lane.t * 4; d += kStepElements) {
      const SplitFour upper = FourOf(memory.staged, key_begin * stride, 1, d, args.key_dim);
      const SplitFour lower =
          FourOf(memory.staged, (key_begin + kStepRows / 2) * stride, 1, d, args.key_dim);
      const SplitFour query =
          FourOf(memory.query, (row_begin + lane.g) * args.key_dim, 1, d, query_end);
      MultiplyAccumulate(sums, upper, lower, query);
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int64_t key = first + key_begin + i / 2 * (kStepRows / 2);
      const int64_t row = row_begin + lane.t * 2 + i % 2;
      if (row >= tile.rows) {
        continue;
      }
      const int64_t position = PositionOf(args, tile, row);
      float logit = -INFINITY;
      if (key <= position) {
        if (args.weighting == Weighting::kTransformerXl) {
          sums[i] += DistanceTerm(args, position - key, head, memory.query, row * args.key_dim);
        }
        logit = args.scale * sums[i];
      }
      memory.weights[row * kChunkKeys + key - chunk_begin] = logit;
    }
  }
}

// Turns a row's logits into exp(logit - largest); every lane gets the largest and the total.
__device__ __forceinline__ void SoftmaxRow(const Shared<float>& row, float& largest, float& total) {
  const int lane = static_cast<int>(threadIdx.x) % kWarpLanes;
  largest = -INFINITY;
  for (int key = lane; key < kChunkKeys; key += kWarpLanes) {
    const float logit = row[key];
    largest = logit > largest ? logit : largest;
  }
  largest = WarpReduce(largest, Larger());
  total = 0;
  for (int key = lane; key < kChunkKeys; key += kWarpLanes) {
    const float logit = row[key];
    // What is masked weighs nothing, even where no key of the chunk is seen.
    const float weight = logit == -INFINITY ? 0.0F : expf(logit - largest);
    row[key] = weight;
    total += weight;
  }
  total = WarpReduce(total, Sum());
}

// log(1 + exp(x)) without overflow.
__device__ __forceinline__ double Softplus(double x) {
  return (x > 0 ? x : 0.0) + log1p(exp(x > 0 ? -x : x));
}

// Turns a row's logits into the weights of a stick that the chunk's newest key breaks first; gives
// the part of the stick that is left after the oldest.
__device__ __forceinline__ float BreakStickRow(const Shared<float>& row) {
  const int lane = static_cast<int>(threadIdx.x) % kWarpLanes;
  double log_remainder = 0;
  for (int first = kChunkKeys - kTileKeys; first >= 0; first -= kTileKeys) {
    const float logit = row[first + lane];
    const bool seen = logit != -INFINITY;
    const double broken = seen ? Softplus(logit) : 0.0;
    double newer = broken;  // of this key and of all newer ones of the tile
    for (int step = 1; step < kWarpLanes; step *= 2) {
      const double other = ShuffleFrom(newer, lane + step);
      newer += lane + step < kWarpLanes ? other : 0.0;
    }
    const double before = log_remainder - (newer - broken);
    row[first + lane] =
        seen ? static_cast<float>(exp(before - Softplus(-static_cast<double>(logit)))) : 0.0F;
    log_remainder -= ShuffleFrom(newer, 0);
  }
  return static_cast<float>(exp(log_remainder));
}

__device__ __forceinline__ void WeighRows(
    const AttentionArgs& args, const QueryTile& tile, const AttentionMemory& memory
) {
  for (int64_t row = threadIdx.x / kWarpLanes; row < tile.rows; row += kAttentionWarps) {
    const Shared<float> weights = memory.weights + row * kChunkKeys;
    float largest = 0;
    float total = 0;
    if (args.weighting == Weighting::kStickBreaking) {
      total = BreakStickRow(weights);
    } else {
      SoftmaxRow(weights, largest, total);
    }
    if (threadIdx.x % kWarpLanes == 0) {
      memory.states[row * 4] = largest;
      memory.states[row * 4 + 1] = total;
    }
  }
}

// Which element of [rows, value_dim] the i-th sum of a step is, whose first row and channel of this
// lane are given; -1: none.
__device__ __forceinline__ int64_t
SumPlace(const AttentionArgs& args, const QueryTile& tile, int64_t channel, int64_t row, int i) {
  channel += i / 2 * (kStepRows / 2);
  row += i % 2;
  return channel < args.value_dim && row < tile.rows ? row * args.value_dim + channel : -1;
}

// Adds the staged values of one tile of keys. A lane always has the same elements of [rows,
// value_dim].
__device__ __forceinline__ void AddValues(
    const AttentionArgs& args,
    const QueryTile& tile,
    int first_of_chunk,
    const AttentionMemory& memory
) {
  const StepLane lane = LaneOfStep();
  const int64_t channel_steps = (args.value_dim + kStepRows - 1) / kStepRows;
  const int64_t steps = (tile.rows + kStepColumns - 1) / kStepColumns * channel_steps;
  const int64_t stride = args.value_dim + 1;
  for (int64_t step = threadIdx.x / kWarpLanes; step < steps; step += kAttentionWarps) {
    const int64_t channel = step % channel_steps * kStepRows + lane.g;
    const int64_t row_begin = step / channel_steps * kStepColumns;
    float sums[4] = {};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int64_t place = SumPlace(args, tile, channel, row_begin + lane.t * 2, i);
      sums[i] = first_of_chunk == 0 || place < 0 ? 0.0F : float(memory.sums[place]);
    }
    const int64_t upper_end = channel < args.value_dim ? kTileKeys : 0;
    const int64_t lower_end = channel + kStepRows / 2 < args.value_dim ? kTileKeys : 0;
    const int64_t weight_end = row_begin + lane.g < tile.rows ? kTileKeys : 0;
    const int64_t weights = (row_begin + lane.g) * kChunkKeys + first_of_chunk;
#pragma unroll
    for (int key = 0; key < kTileKeys; key += kStepElements) {
      const int64_t first = key + lane.t * 4;
      MultiplyAccumulate(
          sums,
          FourOf(memory.staged, channel, stride, first, upper_end),
          FourOf(memory.staged, channel + kStepRows / 2, stride, first, lower_end),
          FourOf(memory.weights, weights, 1, first, weight_end)
      );
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int64_t place = SumPlace(args, tile, channel, row_begin + lane.t * 2, i);
      if (place >= 0) {
        memory.sums[place] = sums[i];
      }
    }
  }
}

// Leaves the chunk's sums and states of every row in shared memory; a row that sees none of its
// keys has sums of 0. Requires: a barrier since the last use of that memory. Ends with a barrier.
__device__ __forceinline__ void AttendChunk(
    const AttentionArgs& args,
    const QueryTile& tile,
    int64_t head,
    int64_t chunk,
    const AttentionMemory& memory
) {
  const int64_t begin = chunk * kChunkKeys;
  // Of the tile's last row: newer keys are of no use to any.
  const int64_t end = PositionOf(args, tile, tile.rows - 1) + 1;
  for (int tile_begin = 0; tile_begin < kChunkKeys; tile_begin += kTileKeys) {
    StageRows(args, tile, head, args.keys, args.key_dim, begin + tile_begin, end, memory.staged);
    __syncthreads();
    TileLogits(args, tile, head, begin + tile_begin, begin, memory);
    __syncthreads();
  }
  WeighRows(args, tile, memory);
  for (int tile_begin = 0; tile_begin < kChunkKeys; tile_begin += kTileKeys) {
    StageRows(
        args, tile, head, args.values, args.value_dim, begin + tile_begin, end, memory.staged
    );
    __syncthreads();
    AddValues(args, tile, tile_begin, memory);
    __syncthreads();
  }
}

}  // namespace switchyard
