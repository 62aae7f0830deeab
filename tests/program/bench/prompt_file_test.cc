#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "program/bench/load_plan.h"
#include "tests/support/temporary_folder.h"

namespace switchyard {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

class PromptFile : public ::testing::Test {
 protected:
  StatusOr<std::vector<TextPrompt>> Read(const std::string& content) {
    return ReadPromptFile(folder_.Write("prompts.jsonl", content).string());
  }

  TemporaryFolder folder_;
};

TEST_F(PromptFile, HasAPromptALine) {
  const auto prompts = Read(
      "{\"prompt\": \"a \\u00e9\", \"max_tokens\": 7}\n\n  \r\n{\"prompt\": \"b\", \"source\": [1]}"
  );

  ASSERT_TRUE(prompts.ok()) << prompts.status();
  ASSERT_THAT(*prompts, SizeIs(2));
  EXPECT_EQ((*prompts)[0].text, "a é");
  EXPECT_EQ((*prompts)[0].max_tokens, 7);
  EXPECT_EQ((*prompts)[1].text, "b");
  EXPECT_EQ((*prompts)[1].max_tokens, std::nullopt);
}

TEST_F(PromptFile, NamesTheLineThatIsWrong) {
  const std::string good = "{\"prompt\": \"a\"}\n\n";
  for (const std::string bad :
       {"{\"prompt\": \"a\"",
        "[\"a\"]",
        "{}",
        "{\"prompt\": \"\"}",
        "{\"prompt\": 3}",
        "{\"prompt\": \"a\", \"max_tokens\": 0}",
        "{\"prompt\": \"a\", \"max_tokens\": 1.5}",
        "{\"prompt\": \"a\", \"max_tokens\": 99999999999999999999}",
        "{\"prompt\": \"\xff\"}"}) {
    const auto prompts = Read(good + bad);

    EXPECT_EQ(prompts.status().code(), StatusCode::kInvalidArgument) << bad;
    EXPECT_THAT(MessageOf(prompts.status()), HasSubstr("prompts.jsonl, line 3: ")) << bad;
  }
}

TEST_F(PromptFile, MustBeThereAndHaveAPrompt) {
  EXPECT_THAT(MessageOf(Read("\n").status()), HasSubstr("has no prompt"));
  EXPECT_EQ(ReadPromptFile(folder_.path() / "absent").status().code(), StatusCode::kNotFound);
  EXPECT_EQ(ReadPromptFile(folder_.path()).status().code(), StatusCode::kNotFound);
}

}  // namespace
}  // namespace switchyard
