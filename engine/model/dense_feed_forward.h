#pragma once

#include <vector>

#include "engine/model/feed_forward.h"
#include "engine/model/model_config.h"

namespace switchyard {

struct DenseFeedForwardWeights {
  Weight up;         // model_dim -> hidden_dim
  Weight up_bias;    // [hidden_dim]
  Weight down;       // hidden_dim -> model_dim
  Weight down_bias;  // [model_dim]
};

// activation(x W1 + b1) W2 + b2, every token through the same weights.
class DenseFeedForward final : public FeedForward {
 public:
  DenseFeedForward(
      Ops& ops, const FeedForwardConfig& config, const DenseFeedForwardWeights& weights
  );

  void Forward(
      const LayerInput& input,
      const StepBatch& batch,
      Scratch& scratch,
      TensorView out,
      ForwardObserver* observer
  ) const override;
  int64_t ScratchBytes(int64_t tokens) const override;
  std::vector<const Router*> Routers() const override { return {}; }

 private:
  Ops& ops_;
  FeedForwardConfig config_;
  DenseFeedForwardWeights weights_;
};

}  // namespace switchyard
