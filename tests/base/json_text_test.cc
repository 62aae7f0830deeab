#include "base/json_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace switchyard {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::StartsWith;

std::string Nested(size_t levels) {
  return std::string(levels, '[') + std::string(levels, ']');
}

std::string ComplaintAbout(const std::string& text) {
  return MessageOf(ParseJson(text, "a.json").status());
}

TEST(ParseJson, GivesTheValue) {
  const auto value = ParseJson(R"({"a": [1, "b"]})", "a.json");

  ASSERT_TRUE(value.ok()) << MessageOf(value.status());
  EXPECT_EQ((*value)["a"][1], "b");
}

TEST(ParseJson, NamesTheFileAndTheByteWhereItStopsBeingJson) {
  EXPECT_THAT(
      ComplaintAbout(R"({"a": x})"),
      AllOf(StartsWith("a.json is not valid JSON"), HasSubstr("column 7"))
  );
}

TEST(ParseJson, RefusesTextThatIsNotUtf8) {
  EXPECT_THAT(ComplaintAbout("\"\xff\""), StartsWith("a.json is not valid JSON"));
}

TEST(ParseJson, TakesAsManyLevelsAsTheLimitAndNoMore) {
  EXPECT_TRUE(ParseJson(Nested(64), "a.json").ok());
  EXPECT_EQ(ComplaintAbout(Nested(65)), "a.json nests deeper than 64 levels");
  EXPECT_EQ(ComplaintAbout(Nested(1'000'000)), "a.json nests deeper than 64 levels");
}

TEST(ParseJson, DoesNotQuoteAFileThatIsOneLongToken) {
  EXPECT_THAT(
      ComplaintAbout("\"" + std::string(100'000, 'a')).substr(0, 300), SizeIs(testing::Lt(300))
  );
}

class ReadJsonFileTest : public testing::Test {
 protected:
  ReadJsonFileTest()
      : path_(std::filesystem::path(testing::TempDir()) / "read_json_file_test.json") {}
  ~ReadJsonFileTest() override { std::filesystem::remove(path_); }

  void Write(const std::string& text) { std::ofstream(path_) << text; }

  std::filesystem::path path_;
};

TEST_F(ReadJsonFileTest, ReadsAFileUpToTheLimit) {
  Write("[1,2]");

  EXPECT_TRUE(ReadJsonFile(path_, 5).ok());
  EXPECT_THAT(
      MessageOf(ReadJsonFile(path_, 4).status()),
      AllOf(HasSubstr("read_json_file_test.json"), HasSubstr("has 5 bytes"), HasSubstr("at most 4"))
  );
}

TEST_F(ReadJsonFileTest, TellsAFileThatIsMissingFromOneThatIsBad) {
  EXPECT_EQ(ReadJsonFile(path_, 100).status().code(), StatusCode::kNotFound);
  Write("{");
  EXPECT_EQ(ReadJsonFile(path_, 100).status().code(), StatusCode::kDataLoss);
}

}  // namespace
}  // namespace switchyard
