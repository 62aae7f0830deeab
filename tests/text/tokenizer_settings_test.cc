#include "text/tokenizer_settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/text/tokenizer_folder.h"

namespace switchyard {
namespace {

using testing::HasSubstr;

StatusOr<std::unique_ptr<Tokenizer>> LoadWithConfig(
    const std::string& config, const TokenizerDefaults& defaults = {}
) {
  return LoadFromFiles(
      {{"tokenizer.json", ReadAll(DataFolder("llama_normalizer") / "tokenizer.json")},
       {"tokenizer_config.json", config}},
      defaults
  );
}

TEST(LoadTokenizer, LetsTheConfigOverrideTheTemplateAndTheDefaults) {
  const auto plain = LoadFromData("llama_normalizer", {.add_bos = false});
  const auto without = LoadWithConfig(R"({"add_bos_token": false})", {.add_bos = true});

  EXPECT_TRUE(plain->AddsBos());
  ASSERT_TRUE(without.ok()) << Complaint(without);
  EXPECT_FALSE((*without)->AddsBos());
}

TEST(LoadTokenizer, TakesBosAndEosFromTheConfigInEitherSpelling) {
  const auto tokenizer =
      LoadWithConfig(R"({"bos_token": "</s>", "eos_token": {"content": "<s>", "lstrip": false}})");

  ASSERT_TRUE(tokenizer.ok()) << Complaint(tokenizer);
  EXPECT_EQ((*tokenizer)->BosId(), 2);
  EXPECT_EQ((*tokenizer)->EosId(), 1);
}

TEST(LoadTokenizer, FallsBackOnWhatTheFamilyKnows) {
  const auto tokenizer = LoadFromData("llama_normalizer", {.eos_id = 2});

  EXPECT_EQ(tokenizer->EosId(), 2);
}

TEST(LoadTokenizer, PrefersTokenizerJson) {
  const auto tokenizer = LoadFromFiles(
      {{"tokenizer.json", ReadAll(DataFolder("byte_level") / "tokenizer.json")},
       {"tokenizer.model", ReadAll(DataFolder("sentencepiece_bpe") / "tokenizer.model")}}
  );

  ASSERT_TRUE(tokenizer.ok()) << Complaint(tokenizer);
  EXPECT_EQ((*tokenizer)->TokenPiece(0), "!");
}

TEST(LoadTokenizer, SaysWhichFilesAreMissing) {
  const auto tokenizer = LoadFromFiles({});

  EXPECT_EQ(tokenizer.status().code(), StatusCode::kNotFound);
  EXPECT_THAT(Complaint(tokenizer), HasSubstr("neither tokenizer.json nor tokenizer.model"));
}

TEST(LoadTokenizer, RefusesABosTokenThatIsNotThere) {
  const auto unknown = LoadWithConfig(R"({"bos_token": "<start>"})");
  const auto none = LoadFromFiles(
      {{"tokenizer.json", ReadAll(DataFolder("byte_level") / "tokenizer.json")}}, {.add_bos = true}
  );
  const auto too_large = LoadFromFiles(
      {{"tokenizer.json", ReadAll(DataFolder("byte_level") / "tokenizer.json")}}, {.bos_id = 70000}
  );

  EXPECT_THAT(
      Complaint(unknown), HasSubstr("bos_token is \"<start>\", which is not in the vocabulary")
  );
  EXPECT_THAT(Complaint(none), HasSubstr("is to be added, but none is known"));
  EXPECT_THAT(Complaint(too_large), HasSubstr("bos_token_id to 70000"));
}

TEST(LoadTokenizer, NamesTheConfigFieldOfTheWrongType) {
  EXPECT_THAT(
      Complaint(LoadWithConfig(R"({"add_bos_token": "yes"})")),
      HasSubstr("tokenizer_config.json: add_bos_token is of type string; expected true or false")
  );
  EXPECT_THAT(
      Complaint(LoadWithConfig(R"({"eos_token": 2})")),
      HasSubstr("tokenizer_config.json: eos_token")
  );
  EXPECT_THAT(Complaint(LoadWithConfig("[]")), HasSubstr("tokenizer_config.json is of type array"));
}

TEST(Encode, RefusesABosTokenThatTheTokenizerDoesNotHave) {
  const auto tokenizer = LoadFromData("byte_level");

  const auto ids = tokenizer->Encode("x", {.add_bos = true});

  EXPECT_EQ(ids.status().code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace switchyard
