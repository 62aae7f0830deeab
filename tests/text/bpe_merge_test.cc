#include "text/bpe_merge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace switchyard {
namespace {

using testing::ElementsAre;

std::vector<BpeSymbol> Letters(const std::string& text) {
  std::vector<BpeSymbol> symbols;
  for (size_t i = 0; i < text.size(); ++i) {
    symbols.push_back({.id = text[i], .begin = i, .bytes = 1});
  }
  return symbols;
}

// Merges by spelling: the position in `rules` is the cost.
std::vector<std::string> Merged(
    const std::string& text, const std::vector<std::string>& rules, std::vector<BpeSymbol> symbols
) {
  MergeSymbols(
      symbols,
      [&](const BpeSymbol& left, const BpeSymbol& right) -> std::optional<BpeMerge> {
        const std::string joined = text.substr(left.begin, left.bytes + right.bytes);
        for (size_t i = 0; i < rules.size(); ++i) {
          if (rules[i] == joined) {
            return BpeMerge{.id = 1000 + static_cast<int32_t>(i), .cost = static_cast<double>(i)};
          }
        }
        return std::nullopt;
      }
  );
  std::vector<std::string> pieces;
  for (const BpeSymbol& symbol : symbols) {
    pieces.push_back(text.substr(symbol.begin, symbol.bytes));
  }
  return pieces;
}

TEST(BpeMerge, AppliesTheCheapestRuleFirst) {
  EXPECT_THAT(Merged("abc", {"bc", "ab"}, Letters("abc")), ElementsAre("a", "bc"));
  EXPECT_THAT(Merged("abc", {"ab", "bc"}, Letters("abc")), ElementsAre("ab", "c"));
}

TEST(BpeMerge, TakesTheLeftmostOfEqualCandidates) {
  EXPECT_THAT(Merged("aaa", {"aa"}, Letters("aaa")), ElementsAre("aa", "a"));
}

TEST(BpeMerge, BuildsOnItsOwnResults) {
  EXPECT_THAT(
      Merged("abcdabcd", {"cd", "ab", "abcd"}, Letters("abcdabcd")), ElementsAre("abcd", "abcd")
  );
}

TEST(BpeMerge, LeavesFrozenSymbolsAlone) {
  std::vector<BpeSymbol> symbols = Letters("abab");
  symbols[2].is_frozen = true;

  EXPECT_THAT(Merged("abab", {"ab", "ba"}, symbols), ElementsAre("ab", "a", "b"));
}

TEST(BpeMerge, AcceptsNoSymbolsAtAll) {
  EXPECT_THAT(Merged("", {"ab"}, {}), ElementsAre());
}

// A quadratic method would take minutes here.
TEST(BpeMerge, CopesWithAVeryLongWord) {
  const std::string text(1 << 20, 'a');

  const auto pieces = Merged(text, {"aa", "aaaa"}, Letters(text));

  EXPECT_EQ(pieces.size(), text.size() / 4);
}

}  // namespace
}  // namespace switchyard
