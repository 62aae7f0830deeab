#include "engine/block_pool.h"

#include <gtest/gtest.h>

#include <optional>
#include <set>
#include <vector>

namespace switchyard {
namespace {

TEST(BlockPool, HandsOutEachBlockOnce) {
  BlockPool pool(3, /*block_tokens=*/2);

  const std::set<BlockId> blocks = {pool.Allocate(), pool.Allocate(), pool.Allocate()};

  EXPECT_EQ(blocks, (std::set<BlockId>{BlockId{0}, BlockId{1}, BlockId{2}}));
  EXPECT_EQ(pool.AvailableBlocks(), 0);
  EXPECT_EQ(pool.TotalBlocks(), 3);
}

TEST(BlockPool, HandsOutAReleasedBlockAgain) {
  BlockPool pool(2, /*block_tokens=*/2);
  const BlockId first = pool.Allocate();
  pool.Allocate();

  pool.Release(first);

  EXPECT_EQ(pool.AvailableBlocks(), 1);
  EXPECT_EQ(pool.Allocate(), first);
}

TEST(BlockPool, FreesASharedBlockWithItsLastReference) {
  BlockPool pool(1, /*block_tokens=*/2);
  const BlockId block = pool.Allocate();
  pool.Share(block);

  pool.Release(block);

  EXPECT_EQ(pool.AvailableBlocks(), 0);

  pool.Release(block);

  EXPECT_EQ(pool.AvailableBlocks(), 1);
}

TEST(BlockPoolDeathTest, StopsWhenABlockIsReleasedTwice) {
  BlockPool pool(2, /*block_tokens=*/2);
  const BlockId block = pool.Allocate();
  pool.Release(block);

  EXPECT_DEATH(pool.Release(block), "block 0 is not held");
}

TEST(BlockPoolDeathTest, StopsWhenAnUnknownBlockIsReleased) {
  BlockPool pool(2, /*block_tokens=*/2);

  EXPECT_DEATH(pool.Release(BlockId{2}), "block 2 of 2");
}

TEST(BlockPoolDeathTest, StopsWhenNoBlockIsLeft) {
  BlockPool pool(1, /*block_tokens=*/2);
  pool.Allocate();

  EXPECT_DEATH(pool.Allocate(), "all 1 blocks are in use");
}

PrefixKey KeyOf(const std::vector<int32_t>& tokens, PrefixId parent = kEmptyPrefix) {
  return {.parent = parent, .tokens = tokens};
}

TEST(BlockPool, KeepsAReleasedBlockOfKnownContentUntilItsRoomIsNeeded) {
  BlockPool pool(2, 2);
  const std::vector<int32_t> tokens = {7, 8};
  const BlockId block = pool.Allocate();
  pool.Remember(block, KeyOf(tokens));

  pool.Release(block);

  EXPECT_EQ(pool.AvailableBlocks(), 2);
  EXPECT_EQ(pool.CachedBlocks(), 1);
  EXPECT_EQ(pool.Find(KeyOf(tokens)), block);

  pool.Allocate();  // the free one
  EXPECT_EQ(pool.Find(KeyOf(tokens)), block);

  EXPECT_EQ(pool.Allocate(), block);
  EXPECT_EQ(pool.Find(KeyOf(tokens)), std::nullopt);
  EXPECT_EQ(pool.CachedBlocks(), 0);
}

TEST(BlockPool, EvictsTheLeastRecentlyReleasedFirst) {
  BlockPool pool(3, 1);
  std::vector<BlockId> blocks;
  for (const int32_t token : {10, 11, 12}) {
    blocks.push_back(pool.Allocate());
    pool.Remember(blocks.back(), KeyOf({token}));
  }
  pool.Release(blocks[1]);
  pool.Release(blocks[0]);
  pool.Release(blocks[2]);
  pool.Share(blocks[1]);  // used again, so it becomes the most recent
  pool.Release(blocks[1]);

  EXPECT_EQ(pool.Allocate(), blocks[0]);
  EXPECT_EQ(pool.Allocate(), blocks[2]);
  EXPECT_EQ(pool.Allocate(), blocks[1]);
}

TEST(BlockPool, TakesACachedBlockOutOfWhatIsAvailableWhenItIsShared) {
  BlockPool pool(1, 1);
  const BlockId block = pool.Allocate();
  pool.Remember(block, KeyOf({5}));
  pool.Release(block);

  pool.Share(block);

  EXPECT_EQ(pool.AvailableBlocks(), 0);
  EXPECT_TRUE(pool.IsHeld(block));
  EXPECT_TRUE(pool.HasOneReader(block));
  EXPECT_TRUE(pool.IsShared(block)) << "others may find it, so nobody may write to it";
}

TEST(BlockPool, FindsTheFirstOfTwoBlocksWithTheSameContent) {
  BlockPool pool(2, 1);
  const BlockId first = pool.Allocate();
  const BlockId second = pool.Allocate();

  const PrefixId id = pool.Remember(first, KeyOf({5}));

  EXPECT_EQ(pool.Remember(second, KeyOf({5})), id);
  EXPECT_EQ(pool.Find(KeyOf({5})), first);
  EXPECT_FALSE(pool.IsShared(second));
}

TEST(BlockPool, FreesAForgottenBlockAtOnce) {
  BlockPool pool(1, 1);
  const BlockId block = pool.Allocate();
  pool.Remember(block, KeyOf({5}));

  pool.Forget(block);
  pool.Release(block);

  EXPECT_EQ(pool.Find(KeyOf({5})), std::nullopt);
  EXPECT_EQ(pool.CachedBlocks(), 0);
  EXPECT_EQ(pool.AvailableBlocks(), 1);
}

}  // namespace
}  // namespace switchyard
