#include "engine/block_pool.h"

#include "base/check.h"

namespace switchyard {

BlockPool::BlockPool(int32_t total_blocks) {
  CHECK(total_blocks >= 0) << "total_blocks=" << total_blocks;
  references_.resize(static_cast<size_t>(total_blocks), 0);
  free_.reserve(references_.size());
  for (int32_t block = total_blocks - 1; block >= 0; --block) {
    free_.push_back(BlockId{block});
  }
}

BlockId BlockPool::Allocate() {
  CHECK(!free_.empty()) << "all " << TotalBlocks() << " blocks are in use";
  const BlockId block = free_.back();
  free_.pop_back();
  references_[static_cast<size_t>(block)] = 1;
  return block;
}

void BlockPool::Share(BlockId block) {
  ++references_[HeldIndex(block)];
}

void BlockPool::Release(BlockId block) {
  const size_t index = HeldIndex(block);
  if (--references_[index] == 0) {
    free_.push_back(block);
  }
}

size_t BlockPool::HeldIndex(BlockId block) const {
  const auto index = static_cast<int64_t>(block);
  CHECK(0 <= index && index < TotalBlocks()) << "block " << index << " of " << TotalBlocks();
  CHECK(references_[static_cast<size_t>(index)] > 0) << "block " << index << " is not held";
  return static_cast<size_t>(index);
}

}  // namespace switchyard
