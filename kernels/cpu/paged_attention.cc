#include <algorithm>

#include "kernels/check_paged_attention.h"
#include "kernels/cpu/attention_task.h"
#include "kernels/cpu/cpu_ops.h"

namespace switchyard {

void CpuOps::PagedAttention(const PagedAttentionArgs& args, TensorView out) {
  CheckPagedAttention(args, out);
  const int32_t* offsets = args.query_offsets.i32();
  attention_tiles_.clear();
  for (int64_t s = 0; s < args.block_tables.dim(0); ++s) {
    for (int64_t token = offsets[s]; token < offsets[s + 1]; token += kTokensPerTile) {
      attention_tiles_.push_back({
          .sequence = s,
          .token_begin = token,
          .token_end = std::min<int64_t>(token + kTokensPerTile, offsets[s + 1]),
      });
    }
  }
  // All tiles of a head, then the next head: the keys and values that they share stay in a cache.
  const auto tiles = static_cast<int64_t>(attention_tiles_.size());
  const int64_t tasks = tiles * args.query.dim(2);
  pool_->ParallelFor(tasks, 1, [&](int64_t begin, int64_t end, int worker) {
    Scratch& scratch = worker_scratch_[static_cast<size_t>(worker)];
    for (int64_t t = begin; t < end; ++t) {
      const AttentionTile& tile = attention_tiles_[static_cast<size_t>(t % tiles)];
      AttentionTask(args, tile, t / tiles, scratch).Run(out);
    }
  });
}

}  // namespace switchyard
