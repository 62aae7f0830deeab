#include "server/generation/completion_text.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/server/fake_tokenizer.h"

namespace switchyard {
namespace {

// Ids 258, 259, ... in the order of the pieces.
std::vector<std::string> AppendAll(CompletionText& text, int tokens) {
  std::vector<std::string> released;
  for (int32_t id = FakeTokenizer::kFirstPiece; id < FakeTokenizer::kFirstPiece + tokens; ++id) {
    released.push_back(text.Append(id));
  }
  return released;
}

using Pieces = std::vector<std::string>;

TEST(CompletionText, NeverReleasesAPartOfAStopStringThatSpansThreeTokens) {
  const FakeTokenizer tokenizer({"one E", "N", "D two"});
  CompletionText text(&tokenizer, {.stop_strings = {"END"}});

  EXPECT_EQ(AppendAll(text, 3), (Pieces{"one ", "", ""}));
  EXPECT_EQ(text.MatchedStop(), "END");
}

TEST(CompletionText, ReleasesWhatOnlyLookedLikeTheBeginningOfAStopString) {
  const FakeTokenizer tokenizer({"one E", "N", "T"});
  CompletionText text(&tokenizer, {.stop_strings = {"END"}});

  EXPECT_EQ(AppendAll(text, 3), (Pieces{"one ", "", "ENT"}));
  EXPECT_FALSE(text.MatchedStop().has_value());
}

TEST(CompletionText, EndsWithTheStopStringWhenItIsIncluded) {
  const FakeTokenizer tokenizer({"one E", "ND two"});
  CompletionText text(&tokenizer, {.stop_strings = {"END"}, .include_stop = true});

  EXPECT_EQ(AppendAll(text, 2), (Pieces{"one ", "END"}));
}

TEST(CompletionText, HoldsACharacterUntilItsLastByteIsThere) {
  const FakeTokenizer tokenizer({"a\xE2", "\x82", "\xAC", "b"});
  CompletionText text(&tokenizer, {});

  EXPECT_EQ(AppendAll(text, 4), (Pieces{"a", "", "\xE2\x82\xAC", "b"}));
}

TEST(CompletionText, GivesTheHeldStopPrefixBeforeTheCutCharacterAtTheEnd) {
  const FakeTokenizer tokenizer({"aEN\xE2\x82"});
  CompletionText text(&tokenizer, {.stop_strings = {"END"}});

  EXPECT_EQ(AppendAll(text, 1), (Pieces{"a"}));
  EXPECT_EQ(text.Flush(), "EN\xEF\xBF\xBD");
}

TEST(CompletionText, TakesAStopStringBeforeTheMinimumAsOrdinaryText) {
  const FakeTokenizer tokenizer({"aEND", "bEN", "Dc", "dEN", "D"});
  CompletionText text(&tokenizer, {.stop_strings = {"END"}, .min_tokens = 4});

  EXPECT_EQ(AppendAll(text, 5), (Pieces{"aEND", "b", "ENDc", "d", ""}));
  EXPECT_EQ(text.MatchedStop(), "END");
}

TEST(CompletionText, StopsAtAStopStringThatBeginsBeforeTheMinimumAndEndsWithIt) {
  const FakeTokenizer tokenizer({"aENDbE", "N", "Dc"});
  CompletionText text(&tokenizer, {.stop_strings = {"END"}, .min_tokens = 3});

  EXPECT_EQ(AppendAll(text, 3), (Pieces{"aENDb", "", ""}));
  EXPECT_EQ(text.MatchedStop(), "END");
}

TEST(CompletionText, KeepsAllTextOfOneTokenThatHoldsTheStopStringTwiceBeforeTheMinimum) {
  const FakeTokenizer tokenizer({"ENDxENDyE", "z"});
  CompletionText text(&tokenizer, {.stop_strings = {"END"}, .min_tokens = 2});

  EXPECT_EQ(AppendAll(text, 2), (Pieces{"ENDxENDy", "Ez"}));
  EXPECT_FALSE(text.MatchedStop().has_value());
}

TEST(CompletionText, HasNoTextForATokenThatTheTokenizerDoesNotKnow) {
  const FakeTokenizer tokenizer({});
  CompletionText text(&tokenizer, {});

  EXPECT_EQ(text.Append(999), "");
}

TEST(CompletionText, IsEmptyWithoutATokenizer) {
  CompletionText text(nullptr, {});

  EXPECT_EQ(text.Append('a'), "");
  EXPECT_EQ(text.Flush(), "");
}

}  // namespace
}  // namespace switchyard
