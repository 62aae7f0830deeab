#pragma once

#include <cstdint>
#include <memory>

#include "engine/model/attention.h"
#include "engine/model/feed_forward.h"
#include "engine/model/model_config.h"
#include "engine/model/weights.h"

namespace switchyard {

// One decoder layer: attention, then feed-forward, each with its norm before or after
// (NormPlacement).
class Block {
 public:
  Block(
      Ops& ops,
      const NormConfig& norm,
      NormWeights attention_norm,
      std::unique_ptr<Attention> attention,
      NormWeights feed_forward_norm,
      std::unique_ptr<FeedForward> feed_forward
  );

  // x [tokens, model_dim] is the residual stream.
  void Forward(
      const StepBatch& batch,
      const KvCache::LayerView& cache,
      Scratch& scratch,
      TensorView x,
      ForwardObserver* observer
  ) const;

  int64_t ScratchBytes(int64_t tokens, int64_t model_dim) const;
  const Attention& attention() const { return *attention_; }
  const FeedForward& feed_forward() const { return *feed_forward_; }

 private:
  // What a part reads: x and its norm, or x twice where the norm comes after.
  LayerInput Before(const NormWeights& norm, TensorView x, TensorView normed) const;
  void After(const NormWeights& norm, TensorView x) const;
  void Normalize(const NormWeights& weights, TensorView x, TensorView out) const;

  Ops& ops_;
  NormConfig norm_;
  NormWeights attention_norm_;
  std::unique_ptr<Attention> attention_;
  NormWeights feed_forward_norm_;
  std::unique_ptr<FeedForward> feed_forward_;
};

}  // namespace switchyard
