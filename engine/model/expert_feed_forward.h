#pragma once

#include <memory>
#include <vector>

#include "engine/model/feed_forward.h"
#include "engine/model/model_config.h"

namespace switchyard {

struct ExpertFeedForwardWeights {
  Weight up;        // experts x (model_dim -> hidden_dim, or 2 * hidden_dim when gated)
  Weight up_bias;   // one vector for each expert; may be absent
  Weight down;      // experts x (hidden_dim -> model_dim)
  Weight out_bias;  // [model_dim], added once; may be absent
};

// sum over the chosen experts of gate_e * (activation(x W1[e]) W2[e]) + bias. Gated (SwiGLU and
// kin): the first half of x W1[e] goes through the activation and multiplies the second. The
// sigma-MoE of Csordas et al. (2023, arXiv:2310.10837) and JetMoE's feed-forward are both this.
class ExpertFeedForward final : public FeedForward {
 public:
  ExpertFeedForward(
      Ops& ops,
      const FeedForwardConfig& config,
      std::unique_ptr<Router> router,
      const ExpertFeedForwardWeights& weights
  );

  void Forward(
      const LayerInput& input,
      const StepBatch& batch,
      Scratch& scratch,
      TensorView out,
      ForwardObserver* observer
  ) const override;
  int64_t ScratchBytes(int64_t tokens) const override;
  std::vector<const Router*> Routers() const override { return {router_.get()}; }

 private:
  Ops& ops_;
  FeedForwardConfig config_;
  std::unique_ptr<Router> router_;
  ExpertFeedForwardWeights weights_;
};

}  // namespace switchyard
