#include "engine/model/attend_paged.h"

namespace switchyard {
namespace {

Weighting WeightingOf(PositionKind positions) {
  switch (positions) {
    case PositionKind::kNone:
    case PositionKind::kRotary:
      return Weighting::kSoftmax;
    case PositionKind::kTransformerXl:
      return Weighting::kTransformerXl;
    case PositionKind::kStickBreaking:
      return Weighting::kStickBreaking;
  }
  return Weighting::kSoftmax;
}

}  // namespace

void AttendPaged(
    Ops& ops,
    const AttentionConfig& config,
    const ProjectedHeads& heads,
    const StepBatch& batch,
    const KvCache::LayerView& cache,
    TensorView out
) {
  if (config.positions == PositionKind::kRotary && config.rotary_dims > 0) {
    const RopeArgs rope = {
        .positions = batch.positions,
        .rotary_dims = config.rotary_dims,
        .base = static_cast<float>(config.rotary_base),
    };
    ops.Rope(
        rope,
        heads.query.Reshaped({batch.tokens, config.QueryGroups() * config.kv_heads, config.key_dim})
    );
    ops.Rope(rope, heads.key);
  }
  ops.StoreKv({
      .key = heads.key,
      .value = heads.value,
      .slots = batch.slots,
      .key_cache = cache.key,
      .value_cache = cache.value,
  });
  ops.PagedAttention(
      {
          .query = heads.query,
          .key_cache = cache.key,
          .value_cache = cache.value,
          .block_tables = batch.block_tables,
          .query_offsets = batch.query_offsets,
          .kv_lengths = batch.kv_lengths,
          .distance_keys = heads.distance_keys,
          .scale = config.scale,
          .weighting = WeightingOf(config.positions),
      },
      out
  );
}

}  // namespace switchyard
