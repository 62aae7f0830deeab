#include "engine/prefix_index.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace switchyard {
namespace {

using Tokens = std::vector<int32_t>;

TEST(PrefixIndex, FindsABlockByItsTokens) {
  PrefixIndex index(4, 3);
  const Tokens tokens = {1, 2, 3};
  const Tokens others = {1, 2, 4};

  index.Insert(BlockId{2}, {.tokens = tokens});

  EXPECT_EQ(index.Find({.tokens = tokens}), BlockId{2});
  EXPECT_EQ(index.Find({.tokens = others}), std::nullopt);
}

TEST(PrefixIndex, TellsTheSameTokensBehindDifferentPrefixesApart) {
  PrefixIndex index(4, 1);
  const Tokens a = {1};
  const Tokens b = {2};
  const Tokens tail = {3};
  const PrefixId behind_a = index.Insert(BlockId{0}, {.tokens = a});
  const PrefixId behind_b = index.Insert(BlockId{1}, {.tokens = b});
  index.Insert(BlockId{2}, {.parent = behind_a, .tokens = tail});

  EXPECT_EQ(index.Find({.parent = behind_a, .tokens = tail}), BlockId{2});
  EXPECT_EQ(index.Find({.parent = behind_b, .tokens = tail}), std::nullopt);
  EXPECT_EQ(index.Find({.tokens = tail}), std::nullopt);
}

TEST(PrefixIndex, TellsSaltsApart) {
  PrefixIndex index(4, 1);
  const Tokens tokens = {1};
  index.Insert(BlockId{0}, {.salt = "one", .tokens = tokens});

  EXPECT_EQ(index.Find({.salt = "one", .tokens = tokens}), BlockId{0});
  EXPECT_EQ(index.Find({.salt = "two", .tokens = tokens}), std::nullopt);
  EXPECT_EQ(index.Find({.tokens = tokens}), std::nullopt);
}

TEST(PrefixIndex, NeverReachesWhatWasBuiltOnAnErasedBlock) {
  PrefixIndex index(4, 1);
  const Tokens head = {1};
  const Tokens tail = {2};
  const PrefixId old_head = index.Insert(BlockId{0}, {.tokens = head});
  index.Insert(BlockId{1}, {.parent = old_head, .tokens = tail});

  index.Erase(BlockId{0});
  const PrefixId new_head = index.Insert(BlockId{2}, {.tokens = head});

  EXPECT_NE(new_head, old_head);
  EXPECT_EQ(index.Find({.parent = new_head, .tokens = tail}), std::nullopt);
}

TEST(PrefixIndex, AgreesWithAMapOverRandomInsertsAndErases) {
  constexpr int32_t kBlocks = 13;
  PrefixIndex index(kBlocks, 2);
  std::map<std::pair<uint64_t, Tokens>, int32_t> expected;
  std::map<int32_t, std::pair<uint64_t, Tokens>> held;
  std::mt19937_64 random(11);
  const auto draw = [&random](int32_t below) {
    return static_cast<int32_t>(random() % static_cast<uint64_t>(below));
  };

  for (int step = 0; step < 20000; ++step) {
    const int32_t block = draw(kBlocks);
    if (held.contains(block)) {
      index.Erase(BlockId{block});
      expected.erase(held[block]);
      held.erase(block);
    }
    const Tokens tokens = {draw(3), draw(3)};
    const PrefixId parent = draw(2) == 0 ? kEmptyPrefix : index.IdOf(BlockId{draw(kBlocks)});
    const auto key = std::pair(static_cast<uint64_t>(parent), tokens);
    const PrefixKey prefix_key{.parent = parent, .tokens = tokens};
    const auto known = expected.find(key);

    ASSERT_EQ(
        index.Find(prefix_key),
        known == expected.end() ? std::nullopt : std::optional(BlockId{known->second})
    );

    if (known == expected.end()) {
      index.Insert(BlockId{block}, prefix_key);
      expected[key] = block;
      held[block] = key;
    }
  }
}

}  // namespace
}  // namespace switchyard
