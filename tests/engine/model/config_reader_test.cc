#include "engine/model/config_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/support/temporary_folder.h"

namespace switchyard {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ConfigReaderTest : public testing::Test {
 protected:
  ConfigReader Open(const std::string& json) {
    StatusOr<ConfigReader> reader = ConfigReader::Open(folder_.Write("config.json", json));
    EXPECT_TRUE(reader.ok()) << MessageOf(reader.status());
    return *std::move(reader);
  }

  TemporaryFolder folder_;
};

TEST_F(ConfigReaderTest, TakesTheFirstSpellingThatIsThere) {
  ConfigReader reader = Open(R"({"moe_top_k": 3, "num_experts_per_tok": 2})");

  EXPECT_EQ(reader.PositiveOr({"num_experts_per_tok", "moe_top_k"}, 9), 2);
  EXPECT_EQ(reader.PositiveOr({"absent", "moe_top_k"}, 9), 3);
  EXPECT_EQ(reader.PositiveOr({"absent"}, 9), 9);
  EXPECT_TRUE(reader.status().ok());
}

TEST_F(ConfigReaderTest, ReadsNumbersThatAreStrings) {
  ConfigReader reader = Open(R"({"a": "76", "b": "none", "c": null, "d": "None", "e": "0.5"})");

  EXPECT_EQ(reader.PositiveOr({"a"}, 1), 76);
  EXPECT_EQ(reader.PositiveOr({"b"}, 5), 5);
  EXPECT_EQ(reader.OptionalPositive({"c"}), std::nullopt);
  EXPECT_EQ(reader.OptionalPositive({"d"}), std::nullopt);
  EXPECT_EQ(reader.NumberOr({"e"}, 1), 0.5);
  EXPECT_TRUE(reader.status().ok());
}

TEST_F(ConfigReaderTest, ReadsFlagsThatAreNumbers) {
  ConfigReader reader = Open(R"({"a": 1, "b": 0, "c": true, "d": false})");

  EXPECT_TRUE(reader.FlagOr({"a"}, false));
  EXPECT_FALSE(reader.FlagOr({"b"}, true));
  EXPECT_TRUE(reader.FlagOr({"c"}, false));
  EXPECT_FALSE(reader.FlagOr({"d"}, true));
  EXPECT_TRUE(reader.FlagOr({"absent"}, true));
}

TEST_F(ConfigReaderTest, ReadsOneTokenIdOrAList) {
  ConfigReader reader = Open(R"({"one": 2, "many": [2, 7], "none": null})");

  EXPECT_THAT(reader.TokenIds("one"), ElementsAre(2));
  EXPECT_THAT(reader.TokenIds("many"), ElementsAre(2, 7));
  EXPECT_THAT(reader.TokenIds("none"), ElementsAre());
}

TEST_F(ConfigReaderTest, KeepsTheFirstErrorAndNamesFileFieldAndValue) {
  ConfigReader reader = Open(R"({"a": -3, "b": "many"})");

  reader.PositiveOr({"a"}, 1);
  reader.PositiveOr({"b"}, 1);

  EXPECT_THAT(
      MessageOf(reader.status()),
      AllOf(HasSubstr("config.json: a is -3"), HasSubstr("[1, 2147483647]"))
  );
}

TEST_F(ConfigReaderTest, RefusesNumbersThatAreNone) {
  for (const char* value :
       {"1.5", "\"seven\"", "[]", "{}", "1e300", "0", "-1", "\"\"", "2147483648"}) {
    ConfigReader reader = Open(Concat("{\"a\": ", value, "}"));

    reader.Positive({"a"});

    EXPECT_FALSE(reader.status().ok()) << value;
  }
}

TEST_F(ConfigReaderTest, NamesAMissingField) {
  ConfigReader reader = Open("{}");

  reader.Positive({"transformer.n_heads"});

  EXPECT_THAT(MessageOf(reader.status()), HasSubstr("transformer.n_heads is missing"));
}

TEST_F(ConfigReaderTest, RefusesOptionsThatAreOn) {
  for (const char* value : {"1", "true", "\"rms\"", "{\"type\": \"linear\"}", "0.5"}) {
    ConfigReader reader = Open(Concat("{\"a\": ", value, "}"));

    reader.Refuse("a");

    EXPECT_THAT(MessageOf(reader.status()), HasSubstr("not supported")) << value;
  }
}

TEST_F(ConfigReaderTest, LetsOptionsPassThatAreOff) {
  for (const char* value : {"0", "0.0", "false", "null", "\"none\"", "\"full\"", "{}"}) {
    ConfigReader reader = Open(Concat("{\"a\": ", value, "}"));

    reader.Refuse("a", {"full"});

    EXPECT_TRUE(reader.status().ok()) << value;
  }
}

TEST(ConfigReader, NamesAFileThatIsMissingOrNoObject) {
  const TemporaryFolder folder;

  EXPECT_THAT(
      MessageOf(ConfigReader::Open(folder.path() / "config.json").status()),
      HasSubstr("config.json: cannot be read")
  );
  for (const char* text : {"[1]", "3"}) {
    EXPECT_THAT(
        MessageOf(ConfigReader::Open(folder.Write("config.json", text)).status()),
        HasSubstr("not a JSON object")
    );
  }
  for (const char* text : {"", "{\"a\":"}) {
    EXPECT_THAT(
        MessageOf(ConfigReader::Open(folder.Write("config.json", text)).status()),
        AllOf(HasSubstr("config.json"), HasSubstr("not valid JSON"))
    );
  }
}

TEST(ConfigReader, RefusesAValueThatNestsTooDeep) {
  const TemporaryFolder folder;
  const std::string brackets(1'000'000, '[');

  const auto reader = ConfigReader::Open(folder.Write(
      "config.json", R"({"rope_scaling": )" + brackets + std::string(1'000'000, ']') + "}"
  ));

  EXPECT_THAT(MessageOf(reader.status()), HasSubstr("config.json nests deeper than 64 levels"));
}

}  // namespace
}  // namespace switchyard
