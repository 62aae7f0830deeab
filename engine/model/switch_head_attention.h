#pragma once

#include <array>
#include <memory>
#include <vector>

#include "engine/model/attention.h"
#include "engine/model/distance_keys.h"
#include "engine/model/model_config.h"

namespace switchyard {

enum class Projection : uint8_t { kQuery = 0, kKey = 1, kValue = 2, kOutput = 3 };
inline constexpr size_t kProjections = 4;

struct SwitchHeadWeights {
  // By Projection: a dense matrix, or, where the projection is routed, one stack of heads * experts
  // matrices, head-major.
  std::array<Weight, kProjections> projections;
};

// A router and the projections that use it: several may share one.
struct SwitchHeadRouter {
  std::unique_ptr<Router> router;
  std::vector<Projection> projections;
};

// SwitchHead (Csordas et al., 2023, arXiv:2312.07987): every head chooses experts for its value and
// its output projection (and for query and key where the checkpoint has them):
//   v_h = sum_e gate_v[h, e] * (x V[h, e]);   y = sum_h sum_e gate_o[h, e] * (attention_h O[h, e]).
// The value side is mixed before it is cached: what lies in the cache does not depend on who reads
// it.
class SwitchHeadAttention final : public Attention {
 public:
  SwitchHeadAttention(
      Ops& ops,
      const AttentionConfig& config,
      std::vector<SwitchHeadRouter> routers,
      const SwitchHeadWeights& weights,
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
  std::vector<const Router*> Routers() const override;

 private:
  using Routings =
      std::array<GroupedRouting, kProjections>;  // by Projection; empty where it is dense

  // x [tokens, model_dim] -> out [tokens, heads, head_dim]
  void Project(Projection projection, TensorView input, const Routings& routings, TensorView out)
      const;
  // attended [tokens, heads, value_dim] -> out [tokens, model_dim]
  void ProjectOutput(TensorView attended, const Routings& routings, TensorView out) const;

  Ops& ops_;
  AttentionConfig config_;
  std::vector<SwitchHeadRouter> routers_;
  SwitchHeadWeights weights_;
  std::unique_ptr<DistanceKeys> distance_keys_;  // null unless positions are Transformer-XL
};

}  // namespace switchyard
