#pragma once

#include <cstdint>

#include "base/status.h"
#include "engine/engine.h"
#include "engine/model/model.h"

namespace switchyard {

// How much memory keys and values get: kv_cache_bytes, or kv_cache_percent of what is left. On a
// backend whose verbs keep memory, what is left is measured: the largest steps run once, in memory
// of their own, which leaves the verbs with all that they will ever want; and what the recording of
// one takes is set aside for as many as there may be. RESOURCE_EXHAUSTED, with
// the numbers, when steps or cache do not fit.
StatusOr<int64_t> DecideKvCacheBytes(const Model& model, const EngineOptions& options);

}  // namespace switchyard
