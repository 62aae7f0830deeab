#include "engine/model/dense_feed_forward.h"

namespace switchyard {

DenseFeedForward::DenseFeedForward(
    Ops& ops, const FeedForwardConfig& config, const DenseFeedForwardWeights& weights
)
    : ops_(ops), config_(config), weights_(weights) {}

void DenseFeedForward::Forward(
    const LayerInput& input,
    const StepBatch& batch,
    Scratch& scratch,
    TensorView out,
    ForwardObserver* /*observer*/
) const {
  const Scratch::Scope scope(scratch);
  const TensorView hidden = scratch.Floats({batch.tokens, config_.hidden_dim});

  ops_.MatMul({.weight = weights_.up, .bias = weights_.up_bias}, input.normed, hidden);
  ops_.Activate({.kind = config_.activation, .gated = false}, hidden, hidden);
  ops_.MatMul({.weight = weights_.down, .bias = weights_.down_bias}, hidden, out);
}

int64_t DenseFeedForward::ScratchBytes(int64_t tokens) const {
  return ScratchBytesFor(DType::kF32, {tokens, config_.hidden_dim});
}

}  // namespace switchyard
