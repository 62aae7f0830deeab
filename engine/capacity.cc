#include "engine/capacity.h"

#include <algorithm>
#include <limits>

namespace switchyard {

Status CheckOptions(const EngineOptions& options, int64_t context_tokens) {
  const SchedulerLimits& limits = options.limits;
  if (limits.max_step_tokens < 1 || limits.max_running < 1 || limits.block_tokens < 1 ||
      options.max_queued_requests < 1) {
    return InvalidArgument(
        "max_step_tokens=",
        limits.max_step_tokens,
        " max_running=",
        limits.max_running,
        " block_tokens=",
        limits.block_tokens,
        " max_queued_requests=",
        options.max_queued_requests,
        "; each must be at least 1"
    );
  }
  if (context_tokens < 2 || context_tokens > std::numeric_limits<int32_t>::max()) {
    return InvalidArgument(
        "the model's context is ",
        context_tokens,
        " tokens; the engine takes 2 to 2147483647: one of the prompt and one generated at least"
    );
  }
  return OkStatus();
}

StatusOr<int32_t> CountBlocks(const EngineOptions& options, const KvLayout& layout) {
  const int64_t block_tokens = options.limits.block_tokens;
  const int64_t block_bytes = block_tokens * layout.BytesPerToken();
  const int64_t blocks = options.kv_cache_bytes / block_bytes;
  if (blocks < 1) {
    return InvalidArgument(
        "kv_cache_bytes is ",
        options.kv_cache_bytes,
        "; one block of ",
        block_tokens,
        " tokens takes ",
        block_bytes,
        "; give at least that much"
    );
  }
  // A slot, block * block_tokens + offset, is an int32 on the device.
  return static_cast<int32_t>(
      std::min<int64_t>(blocks, std::numeric_limits<int32_t>::max() / block_tokens)
  );
}

}  // namespace switchyard
