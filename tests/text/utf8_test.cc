#include "text/utf8.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace switchyard {
namespace {

TEST(Utf8, AcceptsTheFirstAndLastCharacterOfEachLength) {
  EXPECT_FALSE(FindInvalidUtf8(std::string_view("\x00\x7F", 2)));
  EXPECT_FALSE(FindInvalidUtf8("\xC2\x80 \xDF\xBF"));
  EXPECT_FALSE(FindInvalidUtf8("\xE0\xA0\x80 \xEF\xBF\xBF"));
  EXPECT_FALSE(FindInvalidUtf8("\xF0\x90\x80\x80 \xF4\x8F\xBF\xBF"));
}

TEST(Utf8, RefusesOverlongForms) {
  EXPECT_EQ(FindInvalidUtf8("a\xC0\x80"), 1U);
  EXPECT_EQ(FindInvalidUtf8("a\xC1\xBF"), 1U);
  EXPECT_EQ(FindInvalidUtf8("a\xE0\x9F\xBF"), 1U);
  EXPECT_EQ(FindInvalidUtf8("a\xF0\x8F\xBF\xBF"), 1U);
}

TEST(Utf8, RefusesSurrogates) {
  EXPECT_FALSE(FindInvalidUtf8("\xED\x9F\xBF"));
  EXPECT_EQ(FindInvalidUtf8("\xED\xA0\x80"), 0U);
  EXPECT_EQ(FindInvalidUtf8("\xED\xBF\xBF"), 0U);
  EXPECT_FALSE(FindInvalidUtf8("\xEE\x80\x80"));
}

TEST(Utf8, RefusesWhatLiesAboveUnicode) {
  EXPECT_EQ(FindInvalidUtf8("\xF4\x90\x80\x80"), 0U);
  EXPECT_EQ(FindInvalidUtf8("\xF5\x80\x80\x80"), 0U);
  EXPECT_EQ(FindInvalidUtf8("\xFF"), 0U);
}

TEST(Utf8, RefusesLoneContinuationsAndCutCharacters) {
  EXPECT_EQ(FindInvalidUtf8("ab\x80"), 2U);
  EXPECT_EQ(FindInvalidUtf8("ab\xE2\x82"), 2U);
  EXPECT_EQ(FindInvalidUtf8("\xF0\x9F\x98"), 0U);
}

TEST(Utf8, TellsIncompleteFromInvalid) {
  EXPECT_EQ(NextUtf8("\xE2\x82").kind, Utf8Kind::kIncomplete);
  EXPECT_EQ(NextUtf8("\xE2\x82\x41").kind, Utf8Kind::kInvalid);
  EXPECT_EQ(NextUtf8("\xE2\x82\x41").bytes, 2U);
  EXPECT_EQ(NextUtf8("\xE0\x80\x80").bytes, 1U);
  EXPECT_EQ(NextUtf8("\xE2\x82\xAC").code_point, U'\u20AC');
}

// The example of Unicode's chapter 3, table 3-11.
TEST(Utf8, ReplacesEachMaximalPartOfABrokenCharacterOnce) {
  EXPECT_EQ(
      ReplaceInvalidUtf8("\x61\xF1\x80\x80\xE1\x80\xC2\x62\x80\x63\x80\xBF\x64"),
      "a\uFFFD\uFFFD\uFFFDb\uFFFDc\uFFFD\uFFFDd"
  );
}

TEST(Utf8, AppendsEveryLength) {
  std::string text;

  for (const char32_t code_point : {U'\x24', U'\u00A3', U'\u20AC', U'\U0001F600'}) {
    AppendUtf8(code_point, text);
  }

  EXPECT_EQ(text, "\x24\xC2\xA3\xE2\x82\xAC\xF0\x9F\x98\x80");
}

TEST(Utf8, KnowsUnicodeSpaces) {
  EXPECT_TRUE(IsUnicodeSpace(U'\u3000'));
  EXPECT_TRUE(IsUnicodeSpace(U'\u2009'));
  EXPECT_TRUE(IsUnicodeSpace(U'\x0D'));
  EXPECT_FALSE(IsUnicodeSpace(U'\u200B'));
  EXPECT_FALSE(IsUnicodeSpace(U'\u180E'));
}

}  // namespace
}  // namespace switchyard
