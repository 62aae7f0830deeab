#include "text/stop_matcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "text/utf8.h"

namespace switchyard {
namespace {

TEST(StopMatcher, ReleasesTextAtOnceWithoutStopStrings) {
  StopMatcher matcher({}, false);

  EXPECT_EQ(matcher.Append("hello").text, "hello");
  EXPECT_EQ(matcher.Flush(), "");
}

TEST(StopMatcher, HoldsBackWhatCouldBecomeAStopString) {
  StopMatcher matcher({"END"}, false);

  EXPECT_EQ(matcher.Append("the E").text, "the ");
  EXPECT_EQ(matcher.Append("N").text, "");
  EXPECT_EQ(matcher.Append("emy").text, "ENemy");
}

TEST(StopMatcher, ReportsAStopStringSpreadOverSeveralAppends) {
  StopMatcher matcher({"xyz", "END"}, false);
  EXPECT_EQ(matcher.Append("a E").text, "a ");
  EXPECT_EQ(matcher.Append("N").text, "");

  const StopMatcher::Released released = matcher.Append("D and more");

  EXPECT_EQ(released.text, "");
  EXPECT_EQ(released.matched, 1U);
  EXPECT_EQ(matcher.Flush(), "");
}

TEST(StopMatcher, ReleasesTheStopStringWhenAsked) {
  StopMatcher matcher({"END"}, true);
  EXPECT_EQ(matcher.Append("a EN").text, "a ");

  const StopMatcher::Released released = matcher.Append("D and more");

  EXPECT_EQ(released.text, "END");
  EXPECT_EQ(released.matched, 0U);
}

TEST(StopMatcher, LetsTheStopStringThatEndsFirstWin) {
  StopMatcher matcher({"abcdef", "cd"}, false);

  const StopMatcher::Released released = matcher.Append("xabcdefg");

  EXPECT_EQ(released.text, "xab");
  EXPECT_EQ(released.matched, 1U);
}

TEST(StopMatcher, PrefersTheLongerOfTwoThatEndTogether) {
  StopMatcher matcher({"cd", "bcd", "d"}, false);

  const StopMatcher::Released released = matcher.Append("abcde");

  EXPECT_EQ(released.text, "a");
  EXPECT_EQ(released.matched, 1U);
}

TEST(StopMatcher, FindsAStopStringBehindAFalseStart) {
  StopMatcher matcher({"aab"}, false);
  EXPECT_EQ(matcher.Append("aaa").text, "a");

  const StopMatcher::Released released = matcher.Append("b");

  EXPECT_EQ(released.text, "");
  EXPECT_EQ(released.matched, 0U);
}

TEST(StopMatcher, FlushesAStopStringThatNeverCame) {
  StopMatcher matcher({"END"}, false);
  EXPECT_EQ(matcher.Append("the EN").text, "the ");

  EXPECT_EQ(matcher.Flush(), "EN");
}

TEST(StopMatcher, KeepsCharactersWholeWhenStopStringsShareALeadByte) {
  StopMatcher matcher({"é!"}, false);

  const StopMatcher::Released released = matcher.Append("aè");

  EXPECT_EQ(released.text, "aè");
}

// What a plain search over the whole text finds: the earliest end, of those the longest.
struct Expected {
  std::string text;
  std::optional<size_t> matched;
};
Expected SearchAll(const std::string& text, const std::vector<std::string>& stops) {
  for (size_t end = 1; end <= text.size(); ++end) {
    std::optional<size_t> longest;
    for (size_t i = 0; i < stops.size(); ++i) {
      const bool ends_here = text.substr(0, end).ends_with(stops[i]);
      if (ends_here && (!longest || stops[i].size() > stops[*longest].size())) {
        longest = i;
      }
    }
    if (longest) {
      return {.text = text.substr(0, end - stops[*longest].size()), .matched = longest};
    }
  }
  return {.text = text, .matched = std::nullopt};
}

std::string RandomText(std::mt19937& random, size_t longest) {
  std::string text;
  const size_t length = random() % longest + 1;
  for (size_t i = 0; i < length; ++i) {
    text += "ab"[random() % 2];
  }
  return text;
}

TEST(StopMatcher, EqualsASearchOfTheWholeTextHoweverItIsCut) {
  std::mt19937 random(7);
  for (int round = 0; round < 3000; ++round) {
    std::vector<std::string> stops;
    for (size_t i = random() % 3 + 1; i > 0; --i) {
      stops.push_back(RandomText(random, 6));
    }
    const std::string text = RandomText(random, 30);
    const Expected expected = SearchAll(text, stops);
    StopMatcher matcher(stops, false);
    std::string released;
    std::optional<size_t> matched;

    for (size_t begin = 0; begin < text.size() && !matched;) {
      const size_t bytes = random() % 4 + 1;
      const StopMatcher::Released part = matcher.Append(text.substr(begin, bytes));
      released += part.text;
      matched = part.matched;
      begin += bytes;
      // Nothing may be out that the stop string will turn out to cover.
      ASSERT_TRUE(expected.text.starts_with(released)) << text;
    }
    released += matcher.Flush();

    ASSERT_EQ(released, expected.text) << text;
    ASSERT_EQ(matched.has_value(), expected.matched.has_value()) << text;
    if (matched) {
      ASSERT_EQ(stops[*matched], stops[*expected.matched]) << text;
    }
  }
}

}  // namespace
}  // namespace switchyard
