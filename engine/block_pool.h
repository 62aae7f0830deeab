#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "engine/block_id.h"
#include "engine/prefix_index.h"

namespace switchyard {

// Which blocks of the KV cache are in use, by how many sequences, and which hold a prefix that may
// be wanted again. A block that the last sequence releases stays cached if its content is known,
// until its room is needed: the least recently released goes first. Allocates nothing after its
// construction. Used only by the engine thread.
class BlockPool {
 public:
  BlockPool(int32_t total_blocks, int32_t block_tokens);

  // A block with one reference and no known content: one that is free, the most recently freed
  // first, as it is likeliest to be in the processor's caches; else the least recently used cached
  // one. Requires: AvailableBlocks() > 0.
  BlockId Allocate();
  // One more sequence reads the block. Requires: it is held or cached.
  void Share(BlockId block);
  // One reference less; the last one leaves it cached or free. Requires: it is held. A sequence
  // releases its blocks from the last to the first, so that a prefix outlives what follows it.
  void Release(BlockId block);

  // The cached or held block of this content, if there is one.
  std::optional<BlockId> Find(const PrefixKey& key) const { return index_.Find(key); }
  // Says what the block holds, so that others can find it. When another block holds the same
  // already, that one stays the one to be found. Returns the id of the run up to and with this
  // block. Requires: the block is held, and full.
  PrefixId Remember(BlockId block, const PrefixKey& key);
  // Nobody finds the block any more. Requires: it is held.
  void Forget(BlockId block);
  // Of the run that ends with a block that Find gave.
  PrefixId IdOf(BlockId block) const { return index_.IdOf(block); }

  bool IsHeld(BlockId block) const { return references_[IndexOf(block)] > 0; }
  // Whether a sequence that holds the block must copy it before writing to it.
  bool IsShared(BlockId block) const {
    return references_[IndexOf(block)] > 1 || index_.Contains(block);
  }
  bool HasOneReader(BlockId block) const { return references_[IndexOf(block)] == 1; }

  // Free or cached: what Allocate can give.
  int32_t AvailableBlocks() const { return static_cast<int32_t>(free_.size()) + cached_blocks_; }
  // Not held, but with known content.
  int32_t CachedBlocks() const { return cached_blocks_; }
  int32_t TotalBlocks() const { return static_cast<int32_t>(references_.size()); }

 private:
  size_t IndexOf(BlockId block) const;
  // Index of a held block; CHECKs that it is one.
  size_t HeldIndex(BlockId block) const;
  // The list of cached blocks, oldest first.
  void AppendCached(BlockId block);
  void RemoveCached(BlockId block);

  struct Neighbours {
    int32_t previous = -1;
    int32_t next = -1;
  };

  PrefixIndex index_;
  std::vector<int32_t> references_;  // [blocks]
  std::vector<BlockId> free_;        // a stack
  std::vector<Neighbours> cached_;   // [blocks]: the list's links
  int32_t oldest_cached_ = -1;
  int32_t newest_cached_ = -1;
  int32_t cached_blocks_ = 0;
};

}  // namespace switchyard
