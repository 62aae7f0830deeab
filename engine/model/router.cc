#include "engine/model/router.h"

#include <utility>

namespace switchyard {

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
    Ops& ops, const RouterConfig& config, int64_t layer, RouterKind kind, const Weight& score
)
    : ops_(ops), config_(config), layer_(layer), kind_(kind), score_(score) {}

StatusOr<std::unique_ptr<Router>> Router::Create(
    Ops& ops, const RouterConfig& config, int64_t layer, RouterKind kind, const Weight& score
) {
  std::unique_ptr<Router> router(new Router(ops, config, layer, kind, score));
  const int64_t experts = config.groups * config.experts;
  const int64_t counters = int64_t{kPhases} * experts;
  ASSIGN_OR_RETURN(router->counter_memory_, ops.Allocate(2 * counters * BytesOf(DType::kI64)));
  int64_t* memory = static_cast<int64_t*>(router->counter_memory_->data());
  router->counters_ = {
      .tokens = TensorView(memory, DType::kI64, {kPhases, experts}),
      .gate_sum = TensorView(memory + counters, DType::kI64, {kPhases, experts}),
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
          },
      .order = scratch.Take(DType::kI32, {tokens * config_.groups * config_.top_k}),
      .offsets = scratch.Take(DType::kI32, {experts + 1}),
  };
  const Scratch::Scope scope(scratch);
  const TensorView scores = scratch.Floats({tokens, config_.groups, config_.experts});

  ops_.MatMul({.weight = score_, .bias = {}}, input, scores.Reshaped({tokens, experts}));
  ops_.SelectExperts(config_.gate, scores, grouped.routing);
  ops_.GroupByExpert(batch.phases, counters_, grouped);
  if (observer != nullptr) {
    observer->OnRouting(layer_, kind_, grouped.routing);
  }
  return grouped;
}

int64_t Router::ScratchBytes(int64_t tokens) const {
  const int64_t assignments = tokens * config_.groups * config_.top_k;
  const int64_t experts = config_.groups * config_.experts;
  return ScratchBytesFor(DType::kI32, {assignments}) * 2 +
         ScratchBytesFor(DType::kF32, {assignments}) + ScratchBytesFor(DType::kI32, {experts + 1}) +
         ScratchBytesFor(DType::kF32, {tokens * experts});
}

}  // namespace switchyard
