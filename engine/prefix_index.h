#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/block_id.h"

namespace switchyard {

// Names the content of a run of full blocks that starts at a sequence's first token: two runs have
// the same id only if their tokens and their salt are the same. Never used twice.
enum class PrefixId : uint64_t {};

// The empty run that every sequence may share.
inline constexpr PrefixId kEmptyPrefix{0};

// A block by content: the run before it and its own tokens.
struct PrefixKey {
  PrefixId parent = kEmptyPrefix;
  // Sequences share only with those of the same salt. Counts where parent is kEmptyPrefix; behind
  // that, the parent stands for it.
  std::string_view salt = {};
  std::span<const int32_t> tokens;  // block_tokens of them
};

// Which blocks of the KV cache hold which tokens. A hit compares parent, salt and tokens
// themselves, so whatever the hash does, a wrong block is never found, and no client can make one
// collide. A hash table in flat arrays that are allocated once (a salt's text aside). Used only by
// the engine thread.
class PrefixIndex {
 public:
  PrefixIndex(int32_t total_blocks, int32_t block_tokens);

  // The block that holds this content, if one does.
  std::optional<BlockId> Find(const PrefixKey& key) const;

  // Remembers what `block` holds. Requires: the block is not in the index, and the content neither.
  PrefixId Insert(BlockId block, const PrefixKey& key);

  // Forgets the block. What was built on it can no longer be reached.
  void Erase(BlockId block);

  bool Contains(BlockId block) const { return IdOf(block) != kEmptyPrefix; }
  // Of the run that ends with `block`; kEmptyPrefix when the block is not in the index.
  PrefixId IdOf(BlockId block) const { return entries_[static_cast<size_t>(block)].id; }

 private:
  struct Entry {
    PrefixId id = kEmptyPrefix;
    PrefixId parent = kEmptyPrefix;
    std::string salt = {};
    size_t bucket = 0;
    int32_t next = -1;  // in the same bucket
  };

  size_t BucketOf(const PrefixKey& key) const;
  bool Matches(int32_t block, const PrefixKey& key) const;
  std::span<const int32_t> TokensOf(int32_t block) const;

  int32_t block_tokens_;
  uint64_t last_id_ = 0;
  std::vector<Entry> entries_;    // [blocks]
  std::vector<int32_t> tokens_;   // [blocks, block_tokens]
  std::vector<int32_t> buckets_;  // first block of each, or -1; a power of two of them
};

}  // namespace switchyard
