#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/status.h"
#include "kernels/ops.h"

namespace switchyard {

// What one executed layer keeps for each token.
struct KvLayout {
  int64_t layers = 0;  // executed layers; each has its own cache even where weights are shared
  int64_t kv_heads = 0;
  int64_t key_dim = 0;
  int64_t value_dim = 0;  // 0: the value is the key, cached once

  // layers * kv_heads * (key_dim + value_dim) * 4 bytes: keys and values are kept in float32.
  int64_t BytesPerToken() const;
};

// Keys and values of all layers, in blocks of block_tokens tokens. A block id stands for the same
// block in every layer; which sequence owns which block is the block pool's business. Used only by
// the engine thread.
class KvCache {
 public:
  // RESOURCE_EXHAUSTED when the memory is not there.
  static StatusOr<KvCache> Create(
      Ops& ops, const KvLayout& layout, int64_t blocks, int64_t block_tokens
  );

  struct LayerView {
    TensorView key;    // [blocks, block_tokens, kv_heads, key_dim]
    TensorView value;  // [blocks, block_tokens, kv_heads, value_dim]
  };
  LayerView Layer(int64_t layer) const;

  // What block `from` holds, in every layer, also into block `to`. Requires: they differ.
  void CopyBlock(Ops& ops, int64_t from, int64_t to) const;

  int64_t blocks() const { return blocks_; }
  int64_t block_tokens() const { return block_tokens_; }

 private:
  KvLayout layout_;
  int64_t blocks_ = 0;
  int64_t block_tokens_ = 0;
  std::unique_ptr<Buffer> keys_;
  std::unique_ptr<Buffer> values_;
};

}  // namespace switchyard
