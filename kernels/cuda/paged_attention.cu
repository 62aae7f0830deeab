#include <algorithm>

#include "kernels/check_paged_attention.h"
#include "kernels/cuda/attention_chunk.cuh"
#include "kernels/cuda/cuda_ops.h"
#include "kernels/cuda/view.h"

namespace switchyard {
namespace {

constexpr int64_t kMaxTileRows = 16;
// With fewer blocks than so many for each multiprocessor the chunks of a sequence get blocks of
// their own.
constexpr int64_t kBlocksPerMultiprocessor = 2;
// What the chunks of a step leave for the kernel that merges them, at most; with more the chunks
// are not split up. It is allocated whole, so that it never moves.
constexpr int64_t kPartialBytes = int64_t{32} << 20;

// Rows that see nothing of a chunk leave what they have.
__device__ __forceinline__ bool SeesChunk(int64_t position, int64_t chunk) {
  return chunk * kChunkKeys <= position;
}

}  // namespace

// All chunks of a tile in one block.
__global__ void __launch_bounds__(kAttentionThreads) AttentionKernel(AttentionArgs args) {
  DYNAMIC_SHARED(float, shared);
  const AttentionMemory memory = PartsOf(args, shared);
  const int64_t head = blockIdx.y;
  const QueryTile tile = FindTile(args, blockIdx.x);
  if (tile.sequence < 0) {
    return;
  }
  LoadQueries(args, tile, head, memory);
  const int64_t last_position = PositionOf(args, tile, tile.rows - 1);
  for (int64_t chunk = 0; SeesChunk(last_position, chunk); ++chunk) {
    AttendChunk(args, tile, head, chunk, memory);
    for (int64_t i = threadIdx.x; i < tile.rows * args.value_dim; i += kAttentionThreads) {
      const int64_t row = i / args.value_dim;
      if (!SeesChunk(PositionOf(args, tile, row), chunk)) {
        continue;
      }
      if (chunk == 0) {
        memory.totals[i] = float(memory.sums[i]);
        continue;
      }
      const Shared<float> state = memory.states + row * 4;
      const ChunkMerge merge = MergeChunks(args.weighting, state[2], state[3], state[0], state[1]);
      memory.totals[i] = memory.totals[i] * merge.old_factor + memory.sums[i] * merge.new_factor;
    }
    __syncthreads();
    for (int64_t row = threadIdx.x; row < tile.rows; row += kAttentionThreads) {
      if (SeesChunk(PositionOf(args, tile, row), chunk)) {
        const Shared<float> state = memory.states + row * 4;
        const ChunkMerge merge =
            chunk == 0 ? ChunkMerge{0, 1, state[0], state[1]}
                       : MergeChunks(args.weighting, state[2], state[3], state[0], state[1]);
        state[2] = merge.largest;
        state[3] = merge.total;
      }
    }
    __syncthreads();
  }
  for (int64_t i = threadIdx.x; i < tile.rows * args.value_dim; i += kAttentionThreads) {
    const int64_t row = i / args.value_dim;
    const float total =
        args.weighting == Weighting::kStickBreaking ? 1.0F : float(memory.states[row * 4 + 3]);
    const int64_t out_row = RowOfOutput(args, tile, row, head);
    args.out[out_row * args.value_dim + i % args.value_dim] = memory.totals[i] / total;
  }
}

// One chunk of a tile in each block; AttentionMergeKernel adds them up.
__global__ void __launch_bounds__(kAttentionThreads) AttentionChunkKernel(AttentionArgs args) {
  DYNAMIC_SHARED(float, shared);
  const AttentionMemory memory = PartsOf(args, shared);
  const int64_t head = blockIdx.y;
  const int64_t chunk = blockIdx.z;
  const QueryTile tile = FindTile(args, blockIdx.x);
  if (tile.sequence < 0 || !SeesChunk(PositionOf(args, tile, tile.rows - 1), chunk)) {
    return;
  }
  LoadQueries(args, tile, head, memory);
  AttendChunk(args, tile, head, chunk, memory);
  for (int64_t i = threadIdx.x; i < tile.rows * args.value_dim; i += kAttentionThreads) {
    const int64_t row = RowOfOutput(args, tile, i / args.value_dim, head) * args.chunks + chunk;
    args.partial_sums[row * args.value_dim + i % args.value_dim] = memory.sums[i];
  }
  for (int64_t row = threadIdx.x; row < tile.rows; row += kAttentionThreads) {
    const int64_t partial = RowOfOutput(args, tile, row, head) * args.chunks + chunk;
    args.partial_states[partial * 2] = memory.states[row * 4];
    args.partial_states[partial * 2 + 1] = memory.states[row * 4 + 1];
  }
}

__global__ void __launch_bounds__(kAttentionThreads) AttentionMergeKernel(AttentionArgs args) {
  const int64_t head = blockIdx.y;
  const QueryTile tile = FindTile(args, blockIdx.x);
  if (tile.sequence < 0) {
    return;
  }
  for (int64_t i = threadIdx.x; i < tile.rows * args.value_dim; i += kAttentionThreads) {
    const int64_t row = i / args.value_dim;
    const int64_t d = i % args.value_dim;
    const int64_t position = PositionOf(args, tile, row);
    const int64_t out_row = RowOfOutput(args, tile, row, head);
    float sum = 0;
    float largest = 0;
    float total = 0;
    for (int64_t chunk = 0; SeesChunk(position, chunk); ++chunk) {
      const int64_t partial = out_row * args.chunks + chunk;
      const float chunk_sum = args.partial_sums[partial * args.value_dim + d];
      const float chunk_largest = args.partial_states[partial * 2];
      const float chunk_total = args.partial_states[partial * 2 + 1];
      if (chunk == 0) {
        sum = chunk_sum;
        largest = chunk_largest;
        total = chunk_total;
        continue;
      }
      const ChunkMerge merge =
          MergeChunks(args.weighting, largest, total, chunk_largest, chunk_total);
      sum = sum * merge.old_factor + chunk_sum * merge.new_factor;
      largest = merge.largest;
      total = merge.total;
    }
    const float divisor = args.weighting == Weighting::kStickBreaking ? 1.0F : total;
    args.out[out_row * args.value_dim + d] = sum / divisor;
  }
}

void CudaOps::PagedAttention(const PagedAttentionArgs& args, TensorView out) {
  CheckPagedAttentionShapes(args, out);
  if (!status_.ok() || out.elements() == 0) {
    return;
  }
  AttentionArgs attention;
  attention.query = ConstFloats(args.query);
  attention.keys = ConstFloats(args.key_cache);
  attention.values = ConstFloats(args.value_cache);
  attention.tables = ConstInts(args.block_tables);
  attention.offsets = ConstInts(args.query_offsets);
  attention.lengths = ConstInts(args.kv_lengths);
  if (args.weighting == Weighting::kTransformerXl) {
    attention.distance_keys = ConstFloats(args.distance_keys);
  }
  attention.out = Floats(out);
  attention.sequences = args.block_tables.dim(0);
  attention.max_blocks = args.block_tables.dim(1);
  attention.block_tokens = args.key_cache.dim(1);
  attention.groups = args.query.dim(1);
  attention.heads = args.query.dim(2);
  attention.key_dim = args.query.dim(3);
  attention.value_dim = args.value_cache.dim(3);
  attention.chunks = DivideUp(attention.max_blocks * attention.block_tokens, kChunkKeys);
  attention.scale = args.scale;
  attention.weighting = args.weighting;
  RunAttention(attention, args.query.dim(0));
}

void CudaOps::RunAttention(AttentionArgs& args, int64_t tokens) {
  int64_t tile_rows = kMaxTileRows;
  const auto shared_bytes = [&] {
    return AttentionFloats(tile_rows, args.key_dim, args.value_dim) *
           static_cast<int64_t>(sizeof(float));
  };
  while (tile_rows > 1 && shared_bytes() > max_shared_bytes_) {
    tile_rows /= 2;
  }
  if (shared_bytes() > max_shared_bytes_) {
    Note(Unimplemented(
        "attention with key_dim=",
        args.key_dim,
        " value_dim=",
        args.value_dim,
        " takes ",
        shared_bytes(),
        " bytes of shared memory; this device has ",
        max_shared_bytes_
    ));
    return;
  }
  args.tile_rows = static_cast<int>(tile_rows);
  const int64_t rows = tokens * args.groups;
  // Every sequence may have one tile that is not full.
  const int64_t tiles = std::min(rows / tile_rows + args.sequences, rows);
  const dim3 block{kAttentionThreads, 1, 1};
  dim3 grid{GridSize(tiles), GridSize(args.heads), 1};
  const auto bytes = static_cast<size_t>(shared_bytes());
  const int64_t partials = rows * args.heads * args.chunks;
  const int64_t partial_bytes =
      partials * (args.value_dim + 2) * static_cast<int64_t>(sizeof(float));
  const bool split = args.chunks > 1 && partial_bytes <= kPartialBytes &&
                     tiles * args.heads < kBlocksPerMultiprocessor * multiprocessors_;
  if (!split) {
    Note(CudaStatus(AllowSharedBytes(AttentionKernel, bytes), "ask for shared memory"));
    Launch(AttentionKernel, grid, block, bytes, stream_->get(), args);
    NoteLaunch("PagedAttention");
    return;
  }
  auto* memory = static_cast<float*>(Grow(attention_partials_, kPartialBytes));
  if (memory == nullptr) {
    return;
  }
  args.partial_sums = Global<float>(memory, partials * args.value_dim);
  args.partial_states = Global<float>(memory + partials * args.value_dim, partials * 2);
  Note(CudaStatus(AllowSharedBytes(AttentionChunkKernel, bytes), "ask for shared memory"));
  grid.z = GridSize(args.chunks);
  Launch(AttentionChunkKernel, grid, block, bytes, stream_->get(), args);
  grid.z = 1;
  Launch(AttentionMergeKernel, grid, block, 0, stream_->get(), args);
  NoteLaunch("PagedAttention");
}

}  // namespace switchyard
