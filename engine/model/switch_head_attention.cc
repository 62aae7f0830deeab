#include "engine/model/switch_head_attention.h"

#include <utility>

#include "engine/model/attend_paged.h"

namespace switchyard {
namespace {

size_t IndexOf(Projection projection) {
  return static_cast<size_t>(projection);
}

}  // namespace

SwitchHeadAttention::SwitchHeadAttention(
    Ops& ops,
    const AttentionConfig& config,
    std::vector<SwitchHeadRouter> routers,
    const SwitchHeadWeights& weights,
    std::unique_ptr<DistanceKeys> distance_keys
)
    : ops_(ops),
      config_(config),
      routers_(std::move(routers)),
      weights_(weights),
      distance_keys_(std::move(distance_keys)) {}

void SwitchHeadAttention::Forward(
    const LayerInput& input,
    const StepBatch& batch,
    const KvCache::LayerView& cache,
    Scratch& scratch,
    TensorView out,
    ForwardObserver* observer
) const {
  const int64_t tokens = batch.tokens;
  const int64_t heads = config_.kv_heads;
  const Scratch::Scope scope(scratch);
  Routings routings;
  for (const SwitchHeadRouter& router : routers_) {
    const GroupedRouting grouped = router.router->Route(input.normed, batch, scratch, observer);
    for (const Projection projection : router.projections) {
      routings[IndexOf(projection)] = grouped;
    }
  }

  const TensorView query = scratch.Floats({tokens, heads, config_.key_dim});
  const TensorView key = scratch.Floats({tokens, heads, config_.key_dim});
  const TensorView value = scratch.Floats({tokens, heads, config_.value_dim});
  Project(Projection::kQuery, input.normed, routings, query);
  Project(Projection::kKey, input.normed, routings, key);
  Project(
      Projection::kValue,
      config_.value_stream == StreamForm::kRaw ? input.raw : input.normed,
      routings,
      value
  );

  const TensorView attended = scratch.Floats({tokens, 1, heads, config_.value_dim});
  const ProjectedHeads projected = {
      .query = query.Reshaped({tokens, 1, heads, config_.key_dim}),
      .key = key,
      .value = value,
      .distance_keys = distance_keys_ == nullptr ? TensorView() : distance_keys_->table()};
  AttendPaged(ops_, config_, projected, batch, cache, attended);
  ProjectOutput(attended.Reshaped({tokens, heads, config_.value_dim}), routings, out);
}

void SwitchHeadAttention::Project(
    Projection projection, TensorView input, const Routings& routings, TensorView out
) const {
  const Weight& weight = weights_.projections[IndexOf(projection)];
  const int64_t tokens = out.dim(0);
  const int64_t heads = out.dim(1);
  if (weight.role == WeightRole::kDense) {
    ops_.MatMul({.weight = weight, .bias = {}}, input, out.Reshaped({tokens, heads * out.dim(2)}));
    return;
  }
  ops_.ExpertMatMul(
      {
          .weight = weight,
          .expert_bias = {},
          .bias = {},
          .grouped = routings[IndexOf(projection)],
          .input = input,
          .input_rows = RowOf::kToken,
          .output_rows = RowOf::kGroup,
          .gated = true,
      },
      out.Reshaped({tokens * heads, out.dim(2)})
  );
}

void SwitchHeadAttention::ProjectOutput(
    TensorView attended, const Routings& routings, TensorView out
) const {
  const Weight& weight = weights_.projections[IndexOf(Projection::kOutput)];
  const int64_t tokens = attended.dim(0);
  const int64_t heads = attended.dim(1);
  const int64_t value_dim = attended.dim(2);
  if (weight.role == WeightRole::kDense) {
    ops_.MatMul(
        {.weight = weight, .bias = {}}, attended.Reshaped({tokens, heads * value_dim}), out
    );
    return;
  }
  ops_.ExpertMatMul(
      {
          .weight = weight,
          .expert_bias = {},
          .bias = {},
          .grouped = routings[IndexOf(Projection::kOutput)],
          .input = attended.Reshaped({tokens * heads, value_dim}),
          .input_rows = RowOf::kGroup,
          .output_rows = RowOf::kToken,
          .gated = true,
      },
      out
  );
}

int64_t SwitchHeadAttention::ScratchBytes(int64_t tokens) const {
  int64_t bytes = 0;
  for (const SwitchHeadRouter& router : routers_) {
    bytes += router.router->ScratchBytes(tokens);
  }
  return bytes + 2 * ScratchBytesFor(DType::kF32, {tokens, config_.kv_heads, config_.key_dim}) +
         2 * ScratchBytesFor(DType::kF32, {tokens, config_.kv_heads, config_.value_dim});
}

std::vector<const Router*> SwitchHeadAttention::Routers() const {
  std::vector<const Router*> routers;
  for (const SwitchHeadRouter& router : routers_) {
    routers.push_back(router.router.get());
  }
  return routers;
}

}  // namespace switchyard
