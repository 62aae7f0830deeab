#include "engine/block_pool.h"

#include <gtest/gtest.h>

#include <set>

namespace switchyard {
namespace {

TEST(BlockPool, HandsOutEachBlockOnce) {
  BlockPool pool(3);

  const std::set<BlockId> blocks = {pool.Allocate(), pool.Allocate(), pool.Allocate()};

  EXPECT_EQ(blocks, (std::set<BlockId>{BlockId{0}, BlockId{1}, BlockId{2}}));
  EXPECT_EQ(pool.AvailableBlocks(), 0);
  EXPECT_EQ(pool.TotalBlocks(), 3);
}

TEST(BlockPool, HandsOutAReleasedBlockAgain) {
  BlockPool pool(2);
  const BlockId first = pool.Allocate();
  pool.Allocate();

  pool.Release(first);

  EXPECT_EQ(pool.AvailableBlocks(), 1);
  EXPECT_EQ(pool.Allocate(), first);
}

TEST(BlockPool, FreesASharedBlockWithItsLastReference) {
  BlockPool pool(1);
  const BlockId block = pool.Allocate();
  pool.Share(block);

  pool.Release(block);

  EXPECT_EQ(pool.AvailableBlocks(), 0);

  pool.Release(block);

  EXPECT_EQ(pool.AvailableBlocks(), 1);
}

TEST(BlockPoolDeathTest, StopsWhenABlockIsReleasedTwice) {
  BlockPool pool(2);
  const BlockId block = pool.Allocate();
  pool.Release(block);

  EXPECT_DEATH(pool.Release(block), "block 0 is not held");
}

TEST(BlockPoolDeathTest, StopsWhenAnUnknownBlockIsReleased) {
  BlockPool pool(2);

  EXPECT_DEATH(pool.Release(BlockId{2}), "block 2 of 2");
}

TEST(BlockPoolDeathTest, StopsWhenNoBlockIsLeft) {
  BlockPool pool(1);
  pool.Allocate();

  EXPECT_DEATH(pool.Allocate(), "all 1 blocks are in use");
}

}  // namespace
}  // namespace switchyard
