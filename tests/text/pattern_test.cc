#include "text/pattern.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/text/tokenizer_folder.h"

namespace switchyard {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> Found(const std::string& expression, const std::string& text) {
  const auto pattern = Pattern::Compile(expression, "file: field");
  EXPECT_TRUE(pattern.ok()) << Complaint(pattern);
  const auto spans = pattern->Matches(text);
  EXPECT_TRUE(spans.ok()) << Complaint(spans);
  std::vector<std::string> found;
  for (const Pattern::Span& span : *spans) {
    found.push_back(text.substr(span.begin, span.end - span.begin));
  }
  return found;
}

TEST(Pattern, KnowsUnicodeClasses) {
  EXPECT_THAT(Found("\\p{L}+", "äß 地3"), ElementsAre("äß", "地"));
  EXPECT_THAT(Found("\\p{N}+", "x٣٤½"), ElementsAre("٣٤½"));
}

TEST(Pattern, TakesWhiteSpaceAsUnicodeDefinesIt) {
  EXPECT_THAT(Found("\\s+", "a\u3000\u0085b\u180Ec"), ElementsAre("\u3000\u0085"));
  EXPECT_THAT(Found("[^\\s]+", "a\u3000\u180Ec"), ElementsAre("a", "\u180Ec"));
}

TEST(Pattern, SkipsEmptyMatches) {
  EXPECT_THAT(Found("é*", "aéé地é"), ElementsAre("éé", "é"));
}

TEST(Pattern, MatchesALiteralAsItStands) {
  const auto pattern = Pattern::CompileLiteral("a.c\\s", "file: field");
  ASSERT_TRUE(pattern.ok()) << Complaint(pattern);

  const auto spans = pattern->Matches("abc a.c\\s");

  ASSERT_TRUE(spans.ok()) << Complaint(spans);
  ASSERT_EQ(spans->size(), 1U);
  EXPECT_EQ(spans->front().begin, 4U);
}

TEST(Pattern, NamesFieldAndPositionOfASyntaxError) {
  const auto pattern = Pattern::Compile("a(b", "file: field");

  EXPECT_EQ(pattern.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(Complaint(pattern), HasSubstr("file: field is not a regular expression"));
}

TEST(Pattern, RefusesClassesThatDifferBetweenLibraries) {
  EXPECT_EQ(Pattern::Compile("\\w+", "f").status().code(), StatusCode::kUnimplemented);
  EXPECT_EQ(Pattern::Compile("[a-z&&[^b]]", "f").status().code(), StatusCode::kUnimplemented);
  EXPECT_TRUE(Pattern::Compile("\\\\w", "f").ok());
}

TEST(Pattern, GivesUpOnRunawayBacktracking) {
  const auto pattern = Pattern::Compile("(a|aa)+$", "file: field");
  ASSERT_TRUE(pattern.ok()) << Complaint(pattern);

  const auto spans = pattern->Matches(std::string(60, 'a') + "b");

  EXPECT_EQ(spans.status().code(), StatusCode::kResourceExhausted);
}

TEST(Pattern, CopesWithLongRunsOfSpaces) {
  const auto pattern = Pattern::Compile("\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+", "file: field");
  ASSERT_TRUE(pattern.ok()) << Complaint(pattern);

  const auto spans = pattern->Matches(std::string(1 << 20, ' ') + "b");

  ASSERT_TRUE(spans.ok()) << Complaint(spans);
  EXPECT_EQ(spans->size(), 2U);
}

}  // namespace
}  // namespace switchyard
