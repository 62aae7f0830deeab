#pragma once

#include <cstdint>

#include "kernels/ops.h"

namespace switchyard {

// The attention or feed-forward router of a layer, by the name that traces and metrics use.
enum class RouterKind : uint8_t {
  kAttention,
  kAttentionQuery,
  kAttentionKey,
  kAttentionValue,
  kAttentionOutput,
  kFeedForward
};

// "attn", "attn_q", "attn_k", "attn_v", "attn_o", "ffn"
const char* NameOf(RouterKind kind);

// Watches one forward pass, for traces and for comparison with reference outputs. Views are in the
// backend's memory and valid during the call only.
class ForwardObserver {
 public:
  virtual ~ForwardObserver() = default;
  virtual void OnEmbedding(TensorView x) = 0;  // [tokens, model_dim]
  virtual void OnRouting(int64_t layer, RouterKind router, const Routing& routing) = 0;
  virtual void OnHidden(int64_t layer, TensorView x) = 0;  // [tokens, model_dim], after the layer
};

}  // namespace switchyard
