#include <algorithm>

#include "kernels/check_paged_attention.h"
#include "kernels/cpu/attention_task.h"
#include "kernels/cpu/cpu_ops.h"

namespace switchyard {

// Tokens that decode take several heads at once, which lie side by side in the cache: memory likes
// long runs. Prompts take all tiles of a head, then the next head: the keys and values that the
// tiles share stay in a cache.
void CpuOps::FindAttentionTasks(const PagedAttentionArgs& args) {
  attention_tiles_.clear();
  attention_tasks_.clear();
  const int32_t* offsets = args.query_offsets.i32();
  const int64_t heads = args.query.dim(2);
  int64_t decodes = 0;
  for (int64_t s = 0; s < args.block_tables.dim(0); ++s) {
    decodes += offsets[s + 1] - offsets[s] == 1 ? 1 : 0;
  }
  const int64_t fair_share = decodes * heads / pool_->threads();
  const int64_t heads_per_task = std::clamp<int64_t>(fair_share, 1, heads);
  for (int64_t s = 0; s < args.block_tables.dim(0); ++s) {
    for (int64_t token = offsets[s]; token < offsets[s + 1]; token += kTokensPerTile) {
      const AttentionTile tile = {
          .sequence = s,
          .token_begin = token,
          .token_end = std::min<int64_t>(token + kTokensPerTile, offsets[s + 1]),
      };
      if (offsets[s + 1] - offsets[s] > 1) {
        attention_tiles_.push_back(tile);
        continue;
      }
      for (int64_t head = 0; head < heads; head += heads_per_task) {
        attention_tasks_.push_back({tile, {head, std::min(head + heads_per_task, heads)}});
      }
    }
  }
  for (int64_t head = 0; head < heads; ++head) {
    for (const AttentionTile& tile : attention_tiles_) {
      attention_tasks_.push_back({tile, {head, head + 1}});
    }
  }
}

void CpuOps::PagedAttention(const PagedAttentionArgs& args, TensorView out) {
  CheckPagedAttention(args, out);
  FindAttentionTasks(args);
  const auto tasks = static_cast<int64_t>(attention_tasks_.size());
  pool_->ParallelFor(tasks, 1, [&](int64_t begin, int64_t end, int worker) {
    Scratch& scratch = worker_scratch_[static_cast<size_t>(worker)];
    for (int64_t t = begin; t < end; ++t) {
      const auto& [tile, range] = attention_tasks_[static_cast<size_t>(t)];
      AttentionTask(args, tile, range, scratch).Run(out);
    }
  });
}

}  // namespace switchyard
