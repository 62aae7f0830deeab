#include "engine/model/router.h"

#include <utility>

namespace switchyard {
namespace {

constexpr float kUnitEpsilon =
    1e-30F;  // only keeps a vector of zeros from becoming a division by zero

}  // namespace

const char* NameOf(RouterKind kind) {
  switch (kind) {
    case RouterKind::kAttention:
      return "attn";
    case RouterKind::kAttentionQuery:
      return "attn_q";
    case RouterKind::kAttentionKey:
      return "attn_k";
    case RouterKind::kAttentionValue:
      return "attn_v";
    case RouterKind::kAttentionOutput:
      return "attn_o";
    case RouterKind::kFeedForward:
      return "ffn";
  }
  return "unknown";
}

Router::Router(
    Ops& ops,
    const RouterConfig& config,
    int64_t layer,
    RouterKind kind,
    const RouterWeights& weights
)
    : ops_(ops), config_(config), layer_(layer), kind_(kind), weights_(weights) {}

StatusOr<std::unique_ptr<Router>> Router::Create(
    Ops& ops,
    const RouterConfig& config,
    int64_t layer,
    RouterKind kind,
    const RouterWeights& weights
) {
  std::unique_ptr<Router> router(new Router(ops, config, layer, kind, weights));
  const int64_t experts = config.groups * config.experts;
  const int64_t counters = int64_t{kPhases} * experts;
  ASSIGN_OR_RETURN(router->counter_memory_, ops.Allocate(3 * counters * BytesOf(DType::kI64)));
  int64_t* memory = static_cast<int64_t*>(router->counter_memory_->data());
  router->counters_ = {
      .tokens = TensorView(memory, DType::kI64, {kPhases, experts}),
      .gate_sum = TensorView(memory + counters, DType::kI64, {kPhases, experts}),
      .margin_sum = TensorView(memory + 2 * counters, DType::kI64, {kPhases, experts}),
  };
  return router;
}

GroupedRouting Router::Route(
    TensorView input, const StepBatch& batch, Scratch& scratch, ForwardObserver* observer
) const {
  const int64_t tokens = batch.tokens;
  const int64_t experts = config_.groups * config_.experts;
  GroupedRouting grouped = {
      .routing =
          {
              .expert_ids = scratch.Take(DType::kI32, {tokens, config_.groups, config_.top_k}),
              .gates = scratch.Floats({tokens, config_.groups, config_.top_k}),
              .experts = static_cast<int32_t>(config_.experts),
              .margins = scratch.Floats({tokens, config_.groups}),
          },
      .order = scratch.Take(DType::kI32, {tokens * config_.groups * config_.top_k}),
      .offsets = scratch.Take(DType::kI32, {experts + 1}),
  };
  const Scratch::Scope scope(scratch);
  const TensorView scores = scratch.Floats({tokens, config_.groups, config_.experts});

  Score(input, scratch, scores.Reshaped({tokens, experts}));
  ops_.SelectExperts(config_.gate, scores, grouped.routing);
  ops_.GroupByExpert(batch.phases, counters_, grouped);
  if (observer != nullptr && Chooses()) {
    observer->OnRouting(layer_, kind_, grouped.routing);
  }
  return grouped;
}

void Router::Score(TensorView input, Scratch& scratch, TensorView scores) const {
  if (config_.score == RouterScore::kLinear) {
    ops_.MatMul({.weight = weights_.score, .bias = weights_.score_bias}, input, scores);
    return;
  }
  const TensorView inner = scratch.Floats({scores.dim(0), config_.score_dim});
  ops_.MatMul({.weight = weights_.inner, .bias = weights_.inner_bias}, input, inner);
  if (config_.score == RouterScore::kMlp) {
    ops_.Activate({.kind = ActivationKind::kGelu, .gated = false}, inner, inner);
  } else {
    ops_.Normalize(
        {.kind = NormKind::kRms,
         .weight = weights_.unit,
         .bias = {},
         .epsilon = kUnitEpsilon,
         .rows = {}},
        inner,
        inner
    );
  }
  ops_.MatMul({.weight = weights_.score, .bias = {}}, inner, scores);
}

int64_t Router::ScratchBytes(int64_t tokens) const {
  const int64_t assignments = tokens * config_.groups * config_.top_k;
  const int64_t experts = config_.groups * config_.experts;
  return ScratchBytesFor(DType::kI32, {assignments}) * 2 +
         ScratchBytesFor(DType::kF32, {assignments}) + ScratchBytesFor(DType::kI32, {experts + 1}) +
         ScratchBytesFor(DType::kF32, {tokens * config_.groups}) +
         ScratchBytesFor(DType::kF32, {tokens * experts}) +
         ScratchBytesFor(DType::kF32, {tokens * config_.score_dim});
}

}  // namespace switchyard
