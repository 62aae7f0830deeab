#include "engine/model/moa_attention.h"

#include <utility>

namespace switchyard {

MoaAttention::MoaAttention(
    Ops& ops,
    const AttentionConfig& config,
    std::unique_ptr<Router> router,
    const MoaWeights& weights,
    std::unique_ptr<DistanceKeys> distance_keys
)
    : ops_(ops),
      config_(config),
      router_(std::move(router)),
      weights_(weights),
      distance_keys_(std::move(distance_keys)) {}

ProjectedHeads MoaAttention::ProjectKeyValue(TensorView input, Scratch& scratch) const {
  const int64_t tokens = input.dim(0);
  const int64_t heads = config_.kv_heads;
  ProjectedHeads projected;
  if (config_.value_is_key) {
    projected.key = input.Reshaped({tokens, heads, config_.key_dim});
    projected.value = projected.key;
    return projected;
  }
  projected.key = scratch.Floats({tokens, heads, config_.key_dim});
  projected.value = scratch.Floats({tokens, heads, config_.value_dim});
  ops_.MatMul(
      {.weight = weights_.key, .bias = weights_.key_bias},
      input,
      projected.key.Reshaped({tokens, heads * config_.key_dim})
  );
  ops_.MatMul(
      {.weight = weights_.value, .bias = weights_.value_bias},
      input,
      projected.value.Reshaped({tokens, heads * config_.value_dim})
  );
  return projected;
}

void MoaAttention::Forward(
    const LayerInput& input,
    const StepBatch& batch,
    const KvCache::LayerView& cache,
    Scratch& scratch,
    TensorView out,
    ForwardObserver* observer
) const {
  const int64_t tokens = batch.tokens;
  const int64_t slots = config_.router.top_k;
  const int64_t heads = config_.kv_heads;
  const Scratch::Scope scope(scratch);
  const GroupedRouting grouped = router_->Route(input.normed, batch, scratch, observer);

  const TensorView query = scratch.Floats({tokens, slots, heads, config_.key_dim});
  ops_.ExpertMatMul(
      {
          .weight = weights_.query,
          .expert_bias = {},
          .bias = {},
          .grouped = grouped,
          .input = input.normed,
          .input_rows = RowOf::kToken,
          .output_rows = RowOf::kAssignment,
          .gated = false,
      },
      query.Reshaped({tokens * slots, heads * config_.key_dim})
  );
  ProjectedHeads projected = ProjectKeyValue(input.normed, scratch);
  projected.query = query;
  if (distance_keys_ != nullptr) {
    projected.distance_keys = distance_keys_->table();
  }

  const TensorView attended = scratch.Floats({tokens, slots, heads, config_.value_dim});
  AttendPaged(ops_, config_, projected, batch, cache, attended);

  ops_.ExpertMatMul(
      {
          .weight = weights_.output,
          .expert_bias = {},
          .bias = weights_.output_bias,
          .grouped = grouped,
          .input = attended.Reshaped({tokens * slots, heads * config_.value_dim}),
          .input_rows = RowOf::kAssignment,
          .output_rows = RowOf::kToken,
          .gated = true,
      },
      out
  );
}

int64_t MoaAttention::ScratchBytes(int64_t tokens) const {
  const int64_t slots = config_.router.top_k;
  return router_->ScratchBytes(tokens) +
         ScratchBytesFor(DType::kF32, {tokens, slots + 1, config_.kv_heads, config_.key_dim}) +
         ScratchBytesFor(DType::kF32, {tokens, slots + 1, config_.kv_heads, config_.value_dim}) +
         2 * ScratchBytesFor(DType::kF32, {1});  // rounding of two more tensors
}

}  // namespace switchyard
