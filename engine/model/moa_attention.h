#pragma once

#include <memory>
#include <vector>

#include "engine/model/attention.h"
#include "engine/model/model_config.h"

namespace switchyard {

struct MoaWeights {
  Weight score;        // router [experts, model_dim]
  Weight query;        // experts x (model_dim -> kv_heads * key_dim)
  Weight key;          // model_dim -> kv_heads * key_dim, shared by all experts
  Weight value;        // model_dim -> kv_heads * value_dim, shared
  Weight output;       // experts x (kv_heads * value_dim -> model_dim)
  Weight output_bias;  // [model_dim], added once; may be absent
};

// Mixture of attention heads (Zhang et al., 2022, arXiv:2210.05144), as JetMoE uses it: a router
// picks top_k experts for each token; each brings a query projection and an output projection, over
// keys and values that all experts share:
//   y = sum_j gate_j * (attention(x Wq[e_j], K, V) Wo[e_j]) + bias.
class MoaAttention final : public Attention {
 public:
  MoaAttention(
      Ops& ops,
      const AttentionConfig& config,
      std::unique_ptr<Router> router,
      const MoaWeights& weights
  );

  void Forward(
      TensorView input,
      const StepBatch& batch,
      const KvCache::LayerView& cache,
      Scratch& scratch,
      TensorView out,
      ForwardObserver* observer
  ) const override;

  int64_t ScratchBytes(int64_t tokens) const override;
  std::vector<const Router*> Routers() const override { return {router_.get()}; }

 private:
  Ops& ops_;
  AttentionConfig config_;
  std::unique_ptr<Router> router_;
  MoaWeights weights_;
};

}  // namespace switchyard
