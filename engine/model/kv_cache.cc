#include "engine/model/kv_cache.h"

#include <utility>

#include "base/check.h"

namespace switchyard {

int64_t KvLayout::BytesPerToken() const {
  return layers * kv_heads * (key_dim + value_dim) * BytesOf(DType::kF32);
}

StatusOr<KvCache> KvCache::Create(
    Ops& ops, const KvLayout& layout, int64_t blocks, int64_t block_tokens
) {
  const int64_t slots = blocks * block_tokens * layout.layers * layout.kv_heads;
  KvCache cache;
  cache.layout_ = layout;
  cache.blocks_ = blocks;
  cache.block_tokens_ = block_tokens;
  ASSIGN_OR_RETURN(cache.keys_, ops.Allocate(slots * layout.key_dim * BytesOf(DType::kF32)));
  if (layout.value_dim > 0) {
    ASSIGN_OR_RETURN(cache.values_, ops.Allocate(slots * layout.value_dim * BytesOf(DType::kF32)));
  }
  return cache;
}

KvCache::LayerView KvCache::Layer(int64_t layer) const {
  CHECK(0 <= layer && layer < layout_.layers) << "layer " << layer << " of " << layout_.layers;
  const int64_t rows = blocks_ * block_tokens_ * layout_.kv_heads;
  float* keys = static_cast<float*>(keys_->data()) + layer * rows * layout_.key_dim;
  LayerView view;
  view.key =
      TensorView(keys, DType::kF32, {blocks_, block_tokens_, layout_.kv_heads, layout_.key_dim});
  view.value = view.key;
  if (layout_.value_dim > 0) {
    float* values = static_cast<float*>(values_->data()) + layer * rows * layout_.value_dim;
    view.value = TensorView(
        values, DType::kF32, {blocks_, block_tokens_, layout_.kv_heads, layout_.value_dim}
    );
  }
  return view;
}

}  // namespace switchyard
