#include "engine/model/kv_cache.h"

#include <cstddef>
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

void KvCache::CopyBlock(Ops& ops, int64_t from, int64_t to) const {
  CHECK(from != to && 0 <= from && from < blocks_ && 0 <= to && to < blocks_)
      << "from=" << from << " to=" << to << " blocks=" << blocks_;
  const auto copy = [&](const Buffer& buffer, int64_t dim) {
    const int64_t block_bytes = block_tokens_ * layout_.kv_heads * dim * BytesOf(DType::kF32);
    auto* const data = static_cast<std::byte*>(buffer.data());
    for (int64_t layer = 0; layer < layout_.layers; ++layer) {
      const int64_t first = layer * blocks_;
      ops.Copy(data + (first + from) * block_bytes, data + (first + to) * block_bytes, block_bytes);
    }
  };
  copy(*keys_, layout_.key_dim);
  if (values_ != nullptr) {
    copy(*values_, layout_.value_dim);
  }
}

}  // namespace switchyard
