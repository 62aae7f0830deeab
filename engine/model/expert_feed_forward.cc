#include "engine/model/expert_feed_forward.h"

#include <utility>

namespace switchyard {

ExpertFeedForward::ExpertFeedForward(
    Ops& ops,
    const FeedForwardConfig& config,
    std::unique_ptr<Router> router,
    const ExpertFeedForwardWeights& weights
)
    : ops_(ops), config_(config), router_(std::move(router)), weights_(weights) {}

void ExpertFeedForward::Forward(
    const LayerInput& input,
    const StepBatch& batch,
    Scratch& scratch,
    TensorView out,
    ForwardObserver* observer
) const {
  const int64_t assignments = batch.tokens * config_.router.top_k;
  const Scratch::Scope scope(scratch);
  const GroupedRouting grouped = router_->Route(input.normed, batch, scratch, observer);
  const TensorView up = scratch.Floats({assignments, config_.hidden_dim * (config_.gated ? 2 : 1)});
  const TensorView hidden = config_.gated ? scratch.Floats({assignments, config_.hidden_dim}) : up;

  ops_.ExpertMatMul(
      {
          .weight = weights_.up,
          .expert_bias = weights_.up_bias,
          .bias = {},
          .grouped = grouped,
          .input = config_.expert_stream == StreamForm::kRaw ? input.raw : input.normed,
          .input_rows = RowOf::kToken,
          .output_rows = RowOf::kAssignment,
          .gated = false,
      },
      up
  );
  ops_.Activate({.kind = config_.activation, .gated = config_.gated}, up, hidden);
  ops_.ExpertMatMul(
      {
          .weight = weights_.down,
          .expert_bias = {},
          .bias = weights_.out_bias,
          .grouped = grouped,
          .input = hidden,
          .input_rows = RowOf::kAssignment,
          .output_rows = RowOf::kToken,
          .gated = true,
      },
      out
  );
}

int64_t ExpertFeedForward::ScratchBytes(int64_t tokens) const {
  const int64_t assignments = tokens * config_.router.top_k;
  return router_->ScratchBytes(tokens) +
         3 * ScratchBytesFor(DType::kF32, {assignments, config_.hidden_dim});
}

}  // namespace switchyard
