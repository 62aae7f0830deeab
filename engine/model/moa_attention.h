#pragma once

#include <memory>
#include <vector>

#include "engine/model/attend_paged.h"
#include "engine/model/attention.h"
#include "engine/model/distance_keys.h"
#include "engine/model/model_config.h"

namespace switchyard {

struct MoaWeights {
  Weight query;       // experts x (model_dim -> kv_heads * key_dim)
  Weight key;         // model_dim -> kv_heads * key_dim, shared by all experts; unless value_is_key
  Weight value;       // model_dim -> kv_heads * value_dim, shared
  Weight key_bias;    // [kv_heads * key_dim]; may be absent
  Weight value_bias;  // as key_bias
  Weight output;      // experts x (kv_heads * value_dim -> model_dim)
  Weight output_bias;  // [model_dim], added once; may be absent
};

// Mixture of attention heads (Zhang et al., 2022, arXiv:2210.05144), as JetMoE uses it: a router
// picks top_k experts for each token; each brings a query projection and an output projection, over
// keys and values that all experts share (in MoLM these are the input itself, one vector for both):
//   y = sum_j gate_j * (attention(x Wq[e_j], K, V) Wo[e_j]) + bias.
class MoaAttention final : public Attention {
 public:
  MoaAttention(
      Ops& ops,
      const AttentionConfig& config,
      std::unique_ptr<Router> router,
      const MoaWeights& weights,
      std::unique_ptr<DistanceKeys> distance_keys
  );

  void Forward(
      const LayerInput& input,
      const StepBatch& batch,
      const KvCache::LayerView& cache,
      Scratch& scratch,
      TensorView out,
      ForwardObserver* observer
  ) const override;

  int64_t ScratchBytes(int64_t tokens) const override;
  std::vector<const Router*> Routers() const override { return {router_.get()}; }

 private:
  // Key and value of every token; `key` may be `input` itself.
  ProjectedHeads ProjectKeyValue(TensorView input, Scratch& scratch) const;

  Ops& ops_;
  AttentionConfig config_;
  std::unique_ptr<Router> router_;
  MoaWeights weights_;
  std::unique_ptr<DistanceKeys> distance_keys_;  // null unless positions are Transformer-XL
};

}  // namespace switchyard
