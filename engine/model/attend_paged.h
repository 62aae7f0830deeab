#pragma once

#include "engine/model/kv_cache.h"
#include "engine/model/model_config.h"
#include "engine/model/step_batch.h"
#include "kernels/ops.h"

namespace switchyard {

struct ProjectedHeads {
  TensorView query;  // [tokens, query_groups, kv_heads, key_dim]
  TensorView key;    // [tokens, kv_heads, key_dim]
  TensorView value;  // [tokens, kv_heads, value_dim]
  TensorView
      distance_keys;  // [context_tokens, kv_heads, key_dim]; only for Transformer-XL positions
};

// What every attention kind does between its projections: give query and key their positions, store
// key and value, attend over the paged cache. out [tokens, query_groups, kv_heads, value_dim].
// Changes heads.query and heads.key.
void AttendPaged(
    Ops& ops,
    const AttentionConfig& config,
    const ProjectedHeads& heads,
    const StepBatch& batch,
    const KvCache::LayerView& cache,
    TensorView out
);

}  // namespace switchyard
