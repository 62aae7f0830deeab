#pragma once

#include <cstdint>

#include "base/status.h"
#include "engine/engine.h"
#include "engine/model/kv_cache.h"

namespace switchyard {

// INVALID_ARGUMENT when the options ask for an engine that could run nothing, or the model's
// context is out of the range that the engine counts in.
Status CheckOptions(const EngineOptions& options, int64_t context_tokens);

// KV blocks that kv_cache_bytes pay for. INVALID_ARGUMENT when that is none.
StatusOr<int32_t> CountBlocks(const EngineOptions& options, const KvLayout& layout);

}  // namespace switchyard
