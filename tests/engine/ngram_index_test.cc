#include "engine/ngram_index.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace switchyard {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<int32_t> Repeats(const NgramIndex& index, const std::vector<int32_t>& tokens) {
  std::vector<int32_t> repeats;
  index.ForEachRepeat(tokens, [&repeats](int32_t token) { repeats.push_back(token); });
  return repeats;
}

// With an index that saw the first `prompt_tokens` at once and the others one by one.
std::vector<int32_t> RepeatsOf(
    int32_t ngram_tokens, const std::vector<int32_t>& tokens, size_t prompt_tokens
) {
  NgramIndex index;
  const std::span all(tokens);
  index.Start(ngram_tokens, all.first(prompt_tokens), static_cast<int64_t>(tokens.size()));
  for (size_t known = prompt_tokens + 1; known <= tokens.size(); ++known) {
    index.AddLast(all.first(known));
  }
  return Repeats(index, tokens);
}

TEST(NgramIndex, FindsWhatFollowedTheLastTokensBefore) {
  // 1 2 stood at the start, with 3 behind it.
  EXPECT_THAT(RepeatsOf(3, {1, 2, 3, 4, 1, 2}, 6), ElementsAre(3));
  EXPECT_THAT(RepeatsOf(3, {1, 2, 3, 4, 1, 2}, 1), ElementsAre(3));
}

TEST(NgramIndex, FindsEveryPlaceTheLatestFirst) {
  EXPECT_THAT(RepeatsOf(2, {7, 1, 7, 2, 7, 3, 7}, 3), ElementsAre(3, 2, 1));
}

TEST(NgramIndex, FindsPlacesThatOverlap) {
  EXPECT_THAT(RepeatsOf(3, {5, 5, 5, 5}, 2), ElementsAre(5, 5));
}

TEST(NgramIndex, FindsEveryTokenForNgramsOfOne) {
  EXPECT_THAT(RepeatsOf(1, {4, 9, 4}, 1), ElementsAre(4, 9, 4));
}

TEST(NgramIndex, FindsNothingWhereTheLastTokensAreNew) {
  EXPECT_THAT(RepeatsOf(3, {1, 2, 3, 2, 1}, 2), IsEmpty());
}

TEST(NgramIndex, FindsNothingBeforeAnNgramIsThere) {
  EXPECT_THAT(RepeatsOf(4, {1, 1}, 1), IsEmpty());
  EXPECT_THAT(RepeatsOf(4, {1, 1, 1}, 1), IsEmpty());
}

// By trying every place.
std::vector<int32_t> RepeatsBySearch(size_t ngram_tokens, std::span<const int32_t> tokens) {
  const size_t context = ngram_tokens - 1;
  std::vector<int32_t> repeats;
  for (size_t place = tokens.size(); place-- > context;) {
    if (std::ranges::equal(tokens.subspan(place - context, context), tokens.last(context))) {
      repeats.push_back(tokens[place]);
    }
  }
  return repeats;
}

TEST(NgramIndex, AgreesWithASearchAtEveryLength) {
  for (const int32_t ngram_tokens : {1, 2, 3, 5, 8}) {
    std::mt19937 random(static_cast<unsigned>(ngram_tokens));
    std::vector<int32_t> tokens = {0};
    NgramIndex index;
    index.Start(ngram_tokens, tokens, 400);
    while (tokens.size() < 400) {
      tokens.push_back(static_cast<int32_t>(random() % 3));
      index.AddLast(tokens);
      if (tokens.size() >= static_cast<size_t>(ngram_tokens)) {
        ASSERT_EQ(
            Repeats(index, tokens), RepeatsBySearch(static_cast<size_t>(ngram_tokens), tokens)
        ) << "n = "
          << ngram_tokens << " after " << tokens.size();
      }
    }
  }
}

}  // namespace
}  // namespace switchyard
