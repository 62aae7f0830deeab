#pragma once

#include "kernels/cuda/attention_chunk.h"

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

// The logits of kTileKeys staged keys; lane l has key `first` + l.
__device__ __forceinline__ void TileLogits(
    const AttentionArgs& args,
    const QueryTile& tile,
    int64_t head,
    int64_t first,
    int64_t chunk_begin,
    const AttentionMemory& memory
) {
  const int lane = static_cast<int>(threadIdx.x) % kWarpLanes;
  const int64_t key = first + lane;
  for (int64_t row = threadIdx.x / kWarpLanes; row < tile.rows; row += kAttentionWarps) {
    const int64_t position = PositionOf(args, tile, row);
    float logit = -INFINITY;
    if (key <= position) {
      float product = 0;
      for (int64_t d = 0; d < args.key_dim; ++d) {
        product = MultiplyAdd(
            memory.query[row * args.key_dim + d],
            memory.staged[lane * (args.key_dim + 1) + d],
            product
        );
      }
      if (args.weighting == Weighting::kTransformerXl) {
        const int64_t begin = ((position - key) * args.heads + head) * args.key_dim;
        for (int64_t d = 0; d < args.key_dim; ++d) {
          product = MultiplyAdd(
              memory.query[row * args.key_dim + d], args.distance_keys[begin + d], product
          );
        }
      }
      logit = args.scale * product;
    }
    memory.weights[row * kChunkKeys + first - chunk_begin + lane] = logit;
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

// Adds the staged values of one tile of keys. Thread i has the elements i, i + kAttentionThreads,
// ... of [rows, value_dim], always the same ones.
__device__ __forceinline__ void AddValues(
    const AttentionArgs& args,
    const QueryTile& tile,
    int first_of_chunk,
    const AttentionMemory& memory
) {
  for (int64_t i = threadIdx.x; i < tile.rows * args.value_dim; i += kAttentionThreads) {
    const int64_t row = i / args.value_dim;
    const int64_t d = i % args.value_dim;
    float sum = first_of_chunk == 0 ? 0.0F : float(memory.sums[i]);
    for (int key = 0; key < kTileKeys; ++key) {
      sum = MultiplyAdd(
          memory.weights[row * kChunkKeys + first_of_chunk + key],
          memory.staged[key * (args.value_dim + 1) + d],
          sum
      );
    }
    memory.sums[i] = sum;
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
