#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace switchyard {

// A block of the KV cache. The same id stands for the same block in every layer.
enum class BlockId : int32_t {};

// Which blocks of the KV cache are in use, and by how many sequences. Thread-compatible; used only
// by the engine thread.
class BlockPool {
 public:
  explicit BlockPool(int32_t total_blocks);

  // A block that nobody holds, with one reference; the most recently freed one first, as it is
  // likeliest to be in the processor's caches. Requires: AvailableBlocks() > 0.
  BlockId Allocate();
  // One more sequence reads the block. Requires: it is held.
  void Share(BlockId block);
  // One reference less; the last one frees the block. Requires: it is held.
  void Release(BlockId block);

  int32_t AvailableBlocks() const { return static_cast<int32_t>(free_.size()); }
  int32_t TotalBlocks() const { return static_cast<int32_t>(references_.size()); }

 private:
  // Index of a held block in references_; CHECKs that it is one.
  size_t HeldIndex(BlockId block) const;

  std::vector<int32_t> references_;  // [blocks]
  std::vector<BlockId> free_;        // a stack
};

}  // namespace switchyard
