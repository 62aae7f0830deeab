#include "engine/model/block.h"

#include <algorithm>
#include <utility>

namespace switchyard {

Block::Block(
    Ops& ops,
    const NormConfig& norm,
    NormWeights attention_norm,
    std::unique_ptr<Attention> attention,
    NormWeights feed_forward_norm,
    std::unique_ptr<FeedForward> feed_forward
)
    : ops_(ops),
      norm_(norm),
      attention_norm_(attention_norm),
      attention_(std::move(attention)),
      feed_forward_norm_(feed_forward_norm),
      feed_forward_(std::move(feed_forward)) {}

void Block::Forward(
    const StepBatch& batch,
    const KvCache::LayerView& cache,
    Scratch& scratch,
    TensorView x,
    ForwardObserver* observer
) const {
  const Scratch::Scope scope(scratch);
  const TensorView normed = scratch.Floats({x.dim(0), x.dim(1)});
  const TensorView update = scratch.Floats({x.dim(0), x.dim(1)});

  attention_->Forward(Before(attention_norm_, x, normed), batch, cache, scratch, update, observer);
  ops_.Add(x, update);
  After(attention_norm_, x);

  feed_forward_->Forward(Before(feed_forward_norm_, x, normed), batch, scratch, update, observer);
  ops_.Add(x, update);
  After(feed_forward_norm_, x);
}

LayerInput Block::Before(const NormWeights& norm, TensorView x, TensorView normed) const {
  if (norm_.placement == NormPlacement::kAfter) {
    return {.normed = x, .raw = x};
  }
  Normalize(norm, x, normed);
  return {.normed = normed, .raw = x};
}

void Block::After(const NormWeights& norm, TensorView x) const {
  if (norm_.placement == NormPlacement::kAfter) {
    Normalize(norm, x, x);
  }
}

void Block::Normalize(const NormWeights& weights, TensorView x, TensorView out) const {
  const NormalizeArgs args = {
      .kind = norm_.kind,
      .weight = weights.weight,
      .bias = weights.bias,
      .epsilon = norm_.block_epsilon,
      .rows = {},
  };
  ops_.Normalize(args, x, out);
}

int64_t Block::ScratchBytes(int64_t tokens, int64_t model_dim) const {
  return 2 * ScratchBytesFor(DType::kF32, {tokens, model_dim}) +
         std::max(attention_->ScratchBytes(tokens), feed_forward_->ScratchBytes(tokens));
}

}  // namespace switchyard
