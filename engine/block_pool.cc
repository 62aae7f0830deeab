#include "engine/block_pool.h"

#include "base/check.h"

namespace switchyard {

BlockPool::BlockPool(int32_t total_blocks, int32_t block_tokens)
    : index_(total_blocks, block_tokens),
      references_(static_cast<size_t>(total_blocks), 0),
      cached_(static_cast<size_t>(total_blocks)) {
  free_.reserve(references_.size());
  for (int32_t block = total_blocks - 1; block >= 0; --block) {
    free_.push_back(BlockId{block});
  }
}

BlockId BlockPool::Allocate() {
  CHECK(AvailableBlocks() > 0) << "all " << TotalBlocks() << " blocks are in use";
  BlockId block{oldest_cached_};
  if (free_.empty()) {
    RemoveCached(block);
    index_.Erase(block);
  } else {
    block = free_.back();
    free_.pop_back();
  }
  references_[IndexOf(block)] = 1;
  return block;
}

void BlockPool::Share(BlockId block) {
  const size_t index = IndexOf(block);
  if (references_[index] == 0) {
    CHECK(index_.Contains(block)) << "block " << index << " is free";
    RemoveCached(block);
  }
  ++references_[index];
}

void BlockPool::Release(BlockId block) {
  const size_t index = HeldIndex(block);
  if (--references_[index] > 0) {
    return;
  }
  if (index_.Contains(block)) {
    AppendCached(block);
  } else {
    free_.push_back(block);
  }
}

PrefixId BlockPool::Remember(BlockId block, const PrefixKey& key) {
  HeldIndex(block);
  if (const std::optional<BlockId> known = index_.Find(key)) {
    return index_.IdOf(*known);
  }
  return index_.Insert(block, key);
}

void BlockPool::Forget(BlockId block) {
  HeldIndex(block);
  if (index_.Contains(block)) {
    index_.Erase(block);
  }
}

size_t BlockPool::IndexOf(BlockId block) const {
  const auto index = static_cast<int64_t>(block);
  CHECK(0 <= index && index < TotalBlocks()) << "block " << index << " of " << TotalBlocks();
  return static_cast<size_t>(index);
}

size_t BlockPool::HeldIndex(BlockId block) const {
  const size_t index = IndexOf(block);
  CHECK(references_[index] > 0) << "block " << index << " is not held";
  return index;
}

void BlockPool::AppendCached(BlockId block) {
  const auto number = static_cast<int32_t>(block);
  cached_[IndexOf(block)] = {.previous = newest_cached_, .next = -1};
  if (newest_cached_ >= 0) {
    cached_[static_cast<size_t>(newest_cached_)].next = number;
  } else {
    oldest_cached_ = number;
  }
  newest_cached_ = number;
  ++cached_blocks_;
}

void BlockPool::RemoveCached(BlockId block) {
  const Neighbours links = cached_[IndexOf(block)];
  if (links.previous >= 0) {
    cached_[static_cast<size_t>(links.previous)].next = links.next;
  } else {
    oldest_cached_ = links.next;
  }
  if (links.next >= 0) {
    cached_[static_cast<size_t>(links.next)].previous = links.previous;
  } else {
    newest_cached_ = links.previous;
  }
  --cached_blocks_;
}

}  // namespace switchyard
