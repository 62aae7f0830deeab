#include "server/validation/generation_defaults.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace switchyard {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class GenerationDefaultsTest : public ::testing::Test {
 protected:
  GenerationDefaultsTest()
      : folder_(
            std::filesystem::path(::testing::TempDir()) /
            Concat(
                "generation_defaults_",
                ::testing::UnitTest::GetInstance()->current_test_info()->name()
            )
        ) {
    std::filesystem::create_directories(folder_);
  }
  ~GenerationDefaultsTest() override { std::filesystem::remove_all(folder_); }

  StatusOr<GenerationDefaults> Read(const std::string& json) {
    std::ofstream(folder_ / "generation_config.json") << json;
    return ReadGenerationDefaults(folder_, /*vocabulary_size=*/100, GenerationDefaults());
  }

  std::filesystem::path folder_;
};

TEST_F(GenerationDefaultsTest, KeepsTheBaseWhenThereIsNoFile) {
  GenerationDefaults base;
  base.max_tokens = 7;

  const auto defaults = ReadGenerationDefaults(folder_, 100, base);

  ASSERT_TRUE(defaults.ok());
  EXPECT_EQ(defaults->max_tokens, 7);
  EXPECT_EQ(defaults->sampling.temperature, 1);
}

TEST_F(GenerationDefaultsTest, ReadsEveryKeyThatItKnowsAndIgnoresOthers) {
  const auto defaults = Read(R"({"temperature": 0.5, "top_k": 20, "top_p": 0.9, "min_p": 0.05,
      "typical_p": 0.75, "repetition_penalty": 1.25, "no_repeat_ngram_size": 4, "max_new_tokens": 33, "eos_token_id": [2, 7], "cache": {}})"
  );

  ASSERT_TRUE(defaults.ok()) << defaults.status();
  EXPECT_EQ(defaults->sampling.temperature, 0.5F);
  EXPECT_EQ(defaults->sampling.top_k, 20);
  EXPECT_EQ(defaults->sampling.top_p, 0.9F);
  EXPECT_EQ(defaults->sampling.min_p, 0.05F);
  EXPECT_EQ(defaults->sampling.typical_p, 0.75F);
  EXPECT_EQ(defaults->sampling.repetition_penalty, 1.25F);
  EXPECT_EQ(defaults->sampling.no_repeat_ngram_tokens, 4);
  EXPECT_EQ(defaults->max_tokens, 33);
  EXPECT_THAT(defaults->eos_token_ids, ElementsAre(2, 7));
}

TEST_F(GenerationDefaultsTest, IsGreedyWithoutSampling) {
  const auto defaults = Read(R"({"temperature": 0.5, "do_sample": false, "eos_token_id": 3})");

  ASSERT_TRUE(defaults.ok()) << defaults.status();
  EXPECT_EQ(defaults->sampling.temperature, 0);
  EXPECT_THAT(defaults->eos_token_ids, ElementsAre(3));
}

TEST_F(GenerationDefaultsTest, LowersTopKToTheVocabulary) {
  const auto defaults = Read(R"({"top_k": 1000})");

  ASSERT_TRUE(defaults.ok()) << defaults.status();
  EXPECT_EQ(defaults->sampling.top_k, 100);
}

TEST_F(GenerationDefaultsTest, NamesFileKeyAndValueOfAWrongType) {
  const Status status = Read(R"({"top_p": [1]})").status();

  EXPECT_THAT(MessageOf(status), HasSubstr("generation_config.json"));
  EXPECT_THAT(MessageOf(status), HasSubstr("top_p"));
}

TEST_F(GenerationDefaultsTest, NamesTheRangeOfAValueThatIsOutOfIt) {
  const Status status = Read(R"({"top_p": 1.5})").status();

  EXPECT_THAT(MessageOf(status), HasSubstr("generation_config.json"));
  EXPECT_THAT(MessageOf(status), HasSubstr("top_p is 1.5; it must be in (0, 1]"));
}

TEST_F(GenerationDefaultsTest, NamesTheLongestNgramThatMayNotRepeat) {
  EXPECT_THAT(
      MessageOf(Read(R"({"no_repeat_ngram_size": 257})").status()),
      HasSubstr("no_repeat_ngram_size is 257; it must be in [0, 256]")
  );
}

TEST_F(GenerationDefaultsTest, RefusesAnEndTokenOutOfTheVocabulary) {
  EXPECT_THAT(MessageOf(Read(R"({"eos_token_id": 100})").status()), HasSubstr("eos_token_id 100"));
}

TEST_F(GenerationDefaultsTest, RefusesAFileThatIsNoJson) {
  EXPECT_THAT(MessageOf(Read("{").status()), HasSubstr("generation_config.json"));
}

}  // namespace
}  // namespace switchyard
