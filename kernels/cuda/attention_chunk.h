#pragma once

#include "kernels/cuda/device.h"
#include "kernels/ops.h"

// Attention over one chunk of keys for a tile of query rows, the part that prefill and decode
// share.
//
// Keys are cut at multiples of kChunkKeys, counted from the begin of the sequence; a row adds up
// its chunks from the oldest to the newest, and within a chunk everything happens in one order. So
// it does not matter for the bits of a row which rows are beside it in a tile, nor whether one
// block goes through all of its chunks or each chunk has a block of its own.

namespace switchyard {

inline constexpr int kChunkKeys = 128;
inline constexpr int kTileKeys = 32;  // keys in shared memory at a time: one for each lane
inline constexpr int kAttentionThreads = 128;
inline constexpr int kAttentionWarps = kAttentionThreads / kWarpLanes;

struct AttentionArgs {
  Global<const float> query;          // [tokens, groups, heads, key_dim]
  Global<const float> keys;           // [blocks, block_tokens, heads, key_dim]
  Global<const float> values;         // [blocks, block_tokens, heads, value_dim]
  Global<const int32_t> tables;       // [sequences, max_blocks]
  Global<const int32_t> offsets;      // [sequences + 1]
  Global<const int32_t> lengths;      // [sequences]
  Global<const float> distance_keys;  // [max_distance, heads, key_dim]
  Global<float> out;                  // [tokens, groups, heads, value_dim]
  Global<float> partial_sums;         // [rows, chunks, value_dim], rows as `out` has them
  Global<float> partial_states;       // [rows, chunks, 2]: largest and total of each
  int64_t sequences = 0;
  int64_t max_blocks = 0;
  int64_t block_tokens = 0;
  int64_t groups = 0;
  int64_t heads = 0;
  int64_t key_dim = 0;
  int64_t value_dim = 0;
  int64_t chunks = 0;  // of the longest sequence that the tables have room for
  int tile_rows = 0;
  float scale = 0;
  Weighting weighting = Weighting::kSoftmax;
};

// Some rows of one sequence and one head. Row r of a sequence is group r % groups of its token
// r / groups.
struct QueryTile {
  int64_t sequence = -1;  // -1: no such tile
  int64_t first_row = 0;
  int64_t rows = 0;            // of the tile
  int64_t first_token = 0;     // of the sequence, in the step
  int64_t first_position = 0;  // of that token
};

__device__ __forceinline__ QueryTile FindTile(const AttentionArgs& args, int64_t tile) {
  for (int64_t s = 0; s < args.sequences; ++s) {
    const int64_t begin = args.offsets[s];
    const int64_t tokens = args.offsets[s + 1] - begin;
    const int64_t rows = tokens * args.groups;
    const int64_t tiles = (rows + args.tile_rows - 1) / args.tile_rows;
    if (tile < tiles) {
      const int64_t first = tile * args.tile_rows;
      const int64_t left = rows - first;
      return {
          s, first, left < args.tile_rows ? left : args.tile_rows, begin, args.lengths[s] - tokens};
    }
    tile -= tiles;
  }
  return {};
}

// The shared memory of a block.
struct AttentionMemory {
  Shared<float> query;    // [tile_rows, key_dim]
  Shared<float> weights;  // [tile_rows, kChunkKeys]: logits, then weights
  Shared<float> staged;   // [kTileKeys, key_dim + 1 or value_dim + 1]
  Shared<float> sums;     // [tile_rows, value_dim]: of the chunk
  Shared<float> totals;   // [tile_rows, value_dim]: of the chunks so far
  Shared<float> states;   // [tile_rows, 4]: largest and total of the chunk; of the chunks so far
};

__host__ __device__ inline int64_t StagedFloats(int64_t key_dim, int64_t value_dim) {
  return kTileKeys * ((key_dim > value_dim ? key_dim : value_dim) + 1);
}
__host__ __device__ inline int64_t AttentionFloats(
    int64_t tile_rows, int64_t key_dim, int64_t value_dim
) {
  return tile_rows * (key_dim + kChunkKeys + 2 * value_dim + 4) + StagedFloats(key_dim, value_dim);
}

__device__ __forceinline__ AttentionMemory
PartsOf(const AttentionArgs& args, const Shared<float>& memory) {
  const int64_t rows = args.tile_rows;
  const Shared<float> weights = memory + rows * args.key_dim;
  const Shared<float> staged = weights + rows * kChunkKeys;
  const Shared<float> sums = staged + StagedFloats(args.key_dim, args.value_dim);
  const Shared<float> totals = sums + rows * args.value_dim;
  return {memory, weights, staged, sums, totals, totals + rows * args.value_dim};
}

// What a new chunk does to the chunks before it: both are multiplied by a factor, then added.
struct ChunkMerge {
  float old_factor;
  float new_factor;
  float largest;
  float total;
};

// Softmax: `total` is the sum of exp(logit - largest). Stick-breaking: of the chunk's own, what it
// leaves of the stick for older keys.
__device__ __forceinline__ ChunkMerge
MergeChunks(Weighting weighting, float old_largest, float old_total, float largest, float total) {
  if (weighting == Weighting::kStickBreaking) {
    return {total, 1.0F, 0.0F, 1.0F};
  }
  const float both = old_largest > largest ? old_largest : largest;
  const float old_factor = expf(old_largest - both);
  const float new_factor = expf(largest - both);
  return {old_factor, new_factor, both, old_total * old_factor + total * new_factor};
}

__device__ __forceinline__ int64_t
RowOfOutput(const AttentionArgs& args, const QueryTile& tile, int64_t row, int64_t head) {
  const int64_t in_sequence = tile.first_row + row;
  const int64_t token = tile.first_token + in_sequence / args.groups;
  return (token * args.groups + in_sequence % args.groups) * args.heads + head;
}

__device__ __forceinline__ int64_t
PositionOf(const AttentionArgs& args, const QueryTile& tile, int64_t row) {
  return tile.first_position + (tile.first_row + row) / args.groups;
}

}  // namespace switchyard
