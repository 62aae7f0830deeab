#include "text/hugging_face_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/text/tokenizer_folder.h"

namespace switchyard {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using Ids = std::vector<int32_t>;

// <unk> 0, a 1, b 2, ab 3, ▁ 4, </s> 5 (special, added), [X] 6 (added)
json SmallTokenizer() {
  return json::parse(R"({
    "added_tokens": [
      {"id": 5, "content": "</s>", "single_word": false, "lstrip": false, "rstrip": false,
       "normalized": false, "special": true},
      {"id": 6, "content": "[X]", "single_word": false, "lstrip": false, "rstrip": false,
       "normalized": false, "special": false}],
    "normalizer": null,
    "pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "never"},
    "post_processor": null,
    "decoder": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "never"},
    "model": {"type": "BPE", "unk_token": "<unk>", "fuse_unk": true,
              "vocab": {"<unk>": 0, "a": 1, "b": 2, "ab": 3, "▁": 4}, "merges": ["a b"]}
  })");
}

StatusOr<std::unique_ptr<Tokenizer>> LoadJson(const json& tokenizer) {
  return LoadFromFiles({{"tokenizer.json", tokenizer.dump()}});
}

Ids Encoded(const json& description, const std::string& text, const EncodeOptions& options = {}) {
  const auto tokenizer = LoadJson(description);
  EXPECT_TRUE(tokenizer.ok()) << Complaint(tokenizer);
  const auto ids = (*tokenizer)->Encode(text, options);
  EXPECT_TRUE(ids.ok()) << Complaint(ids);
  return *ids;
}

TEST(HuggingFaceTokenizer, AlwaysMatchesOrdinaryAddedTokensAndSpecialOnesOnlyWhenAsked) {
  const json small = SmallTokenizer();

  EXPECT_THAT(Encoded(small, "ab[X]b</s>"), ElementsAre(3, 6, 2, 0));
  EXPECT_THAT(Encoded(small, "ab[X]b</s>", {.parse_special = true}), ElementsAre(3, 6, 2, 5));
}

TEST(HuggingFaceTokenizer, FusesUnknownCharactersOnlyWhenTheFileSaysSo) {
  json separate = SmallTokenizer();
  separate["model"]["fuse_unk"] = false;

  EXPECT_THAT(Encoded(SmallTokenizer(), "aXYb"), ElementsAre(1, 0, 2));
  EXPECT_THAT(Encoded(separate, "aXYb"), ElementsAre(1, 0, 0, 2));
}

TEST(HuggingFaceTokenizer, ReadsMergesAsPairs) {
  json pairs = SmallTokenizer();
  pairs["model"]["merges"] = json::array({json::array({"a", "b"})});

  EXPECT_THAT(Encoded(pairs, "ab"), ElementsAre(3));
}

// The library would: there, a token's being special only concerns its spelling as an added token.
TEST(HuggingFaceTokenizer, KeepsSpecialTokensOutOfReachOfMerges) {
  json special = SmallTokenizer();
  special["added_tokens"].push_back({{"id", 3}, {"content", "ab"}, {"special", true}});
  json whole_words = special;
  whole_words["model"]["ignore_merges"] = true;

  EXPECT_THAT(Encoded(special, "ab"), ElementsAre(1, 2));
  EXPECT_THAT(Encoded(whole_words, "ab"), ElementsAre(1, 2));
  EXPECT_THAT(Encoded(whole_words, "ab", {.parse_special = true}), ElementsAre(3));
}

TEST(HuggingFaceTokenizer, TakesTheBosTokenFromTheTemplate) {
  const auto tokenizer = LoadFromData("byte_level_split");

  EXPECT_TRUE(tokenizer->AddsBos());
  ASSERT_TRUE(tokenizer->BosId());
  EXPECT_EQ(tokenizer->TokenPiece(*tokenizer->BosId()), "<|endoftext|>");
  const auto ids = tokenizer->Encode("", {});
  ASSERT_TRUE(ids.ok()) << Complaint(ids);
  EXPECT_THAT(*ids, ElementsAre(*tokenizer->BosId()));
}

TEST(HuggingFaceTokenizer, GivesTheBytesOfEachKindOfToken) {
  const auto byte_level = LoadFromData("byte_level");
  const auto llama = LoadFromData("llama_normalizer");
  const auto ids = byte_level->Encode(" the", {});
  ASSERT_TRUE(ids.ok()) << Complaint(ids);

  EXPECT_EQ(byte_level->TokenPiece(ids->at(0)), "Ġthe");
  EXPECT_EQ(byte_level->TokenBytes(ids->at(0)), " the");
  EXPECT_EQ(llama->TokenBytes(2), "");
  EXPECT_EQ(llama->TokenPiece(3 + 0xE2), "<0xE2>");
  EXPECT_EQ(llama->TokenBytes(3 + 0xE2), "\xE2");
}

TEST(HuggingFaceTokenizer, EncodesALongTextOfOneWordQuickly) {
  const auto tokenizer = LoadFromData("byte_level");

  const auto ids = tokenizer->Encode(std::string(1 << 20, 'a'), {});

  EXPECT_TRUE(ids.ok()) << Complaint(ids);
}

struct Refusal {
  std::string name;
  std::string pointer;  // which value is replaced
  json value;
  StatusCode code;
  std::string complaint;
};

class RefusedTokenizer : public testing::TestWithParam<Refusal> {};

TEST_P(RefusedTokenizer, NamesFileAndField) {
  json description = SmallTokenizer();
  description[json::json_pointer(GetParam().pointer)] = GetParam().value;

  const auto tokenizer = LoadJson(description);

  EXPECT_EQ(tokenizer.status().code(), GetParam().code) << Complaint(tokenizer);
  EXPECT_THAT(Complaint(tokenizer), HasSubstr("tokenizer.json"));
  EXPECT_THAT(Complaint(tokenizer), HasSubstr(GetParam().complaint));
}

std::vector<Refusal> Refusals() {
  constexpr auto kUnimplemented = StatusCode::kUnimplemented;
  constexpr auto kInvalid = StatusCode::kInvalidArgument;
  const json token = {{"id", 7}, {"content", "z"}, {"single_word", true}};
  return {
      {"WordPiece", "/model/type", "WordPiece", kUnimplemented, "model.type is WordPiece"},
      {"Unigram", "/model/type", "Unigram", kUnimplemented, "model.type is Unigram"},
      {"Normalizer", "/normalizer", {{"type", "NFC"}}, kUnimplemented, "normalizer.type is NFC"},
      {"PreTokenizer",
       "/pre_tokenizer/type",
       "BertPreTokenizer",
       kUnimplemented,
       "pre_tokenizer.type"},
      {"Decoder", "/decoder/type", "WordPiece", kUnimplemented, "decoder.type is WordPiece"},
      {"NoDecoder", "/decoder", nullptr, kInvalid, "lacks the field \"decoder\""},
      {"PostProcessor",
       "/post_processor",
       {{"type", "BertProcessing"}},
       kUnimplemented,
       "post_processor.type"},
      {"SingleWord", "/added_tokens/2", token, kUnimplemented, "added_tokens[2].single_word"},
      {"Dropout", "/model/dropout", 0.1, kUnimplemented, "model.dropout"},
      {"Suffix", "/model/end_of_word_suffix", "</w>", kUnimplemented, "model.end_of_word_suffix"},
      {"IdType", "/model/vocab/a", "1", kInvalid, "model.vocab[\"a\"] is of type string"},
      {"NegativeId", "/model/vocab/a", -1, kInvalid, "model.vocab[\"a\"] is -1"},
      {"FractionalId", "/model/vocab/a", 1.5, kInvalid, "expected an integer"},
      {"HugeId", "/model/vocab/a", 4000000000U, kInvalid, "model.vocab[\"a\"] is 4000000000"},
      {"LargeId", "/model/vocab/a", 100000000, kInvalid, "has the id 100000000"},
      {"SharedId", "/model/vocab/a", 2, kInvalid, "which belongs to"},
      {"Hole", "/model/vocab/a", 9, kInvalid, "no token with the id 1"},
      {"VocabType", "/model/vocab", {1, 2}, kInvalid, "model.vocab is of type array"},
      {"MergeType", "/model/merges/0", 7, kInvalid, "model.merges[0] is of type number"},
      {"MergeSides", "/model/merges/0", {"a"}, kInvalid, "model.merges[0] has 1 elements"},
      {"MergeSpaces", "/model/merges/0", "a b c", kInvalid, "model.merges[0] is \"a b c\""},
      {"MergeToken", "/model/merges/0", "b a", kInvalid, "model.merges[0] needs the token \"ba\""},
      {"UnknownToken", "/model/unk_token", "<?>", kInvalid, "model.unk_token is \"<?>\""},
      {"NoUnknownToken",
       "/model/unk_token",
       nullptr,
       kInvalid,
       "neither unk_token nor byte_fallback"},
      {"AddedId", "/added_tokens/0/id", 1, kInvalid, "which belongs to \"</s>\""},
      {"AddedContent", "/added_tokens/0/content", "", kInvalid, "added_tokens[0].content is empty"},
      {"Scheme", "/pre_tokenizer/prepend_scheme", "last", kInvalid, "prepend_scheme is \"last\""},
      {"Type", "/pre_tokenizer/type", 3, kInvalid, "pre_tokenizer.type is of type number"},
  };
}

INSTANTIATE_TEST_SUITE_P(
    Fields,
    RefusedTokenizer,
    testing::ValuesIn(Refusals()),
    [](const auto& test) { return test.param.name; }
);

TEST(HuggingFaceTokenizer, RefusesATemplateThatAddsTokensBehindTheText) {
  json description = SmallTokenizer();
  description["post_processor"] = json::parse(R"({"type": "TemplateProcessing",
    "single": [{"Sequence": {"id": "A"}}, {"SpecialToken": {"id": "</s>"}}],
    "special_tokens": {"</s>": {"id": "</s>", "ids": [5]}}})");

  const auto tokenizer = LoadJson(description);

  EXPECT_EQ(tokenizer.status().code(), StatusCode::kUnimplemented);
  EXPECT_THAT(Complaint(tokenizer), HasSubstr("post_processor.single[1]"));
}

TEST(HuggingFaceTokenizer, ReportsARegularExpressionThatRunsAway) {
  json description = SmallTokenizer();
  description["pre_tokenizer"] = {
      {"type", "Split"}, {"pattern", {{"Regex", "(a|aa)+$"}}}, {"behavior", "Isolated"}};
  const auto tokenizer = LoadJson(description);
  ASSERT_TRUE(tokenizer.ok()) << Complaint(tokenizer);

  const auto ids = (*tokenizer)->Encode(std::string(60, 'a') + "b", {});

  EXPECT_EQ(ids.status().code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(Complaint(ids), HasSubstr("pre_tokenizer.pattern.Regex"));
}

}  // namespace
}  // namespace switchyard
