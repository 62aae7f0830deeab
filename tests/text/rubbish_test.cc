#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <random>
#include <utility>

#include "tests/text/tokenizer_folder.h"
#include "text/text_file.h"
#include "text/tokenizer.h"

namespace switchyard {
namespace {

using testing::AnyOf;
using testing::HasSubstr;

std::string FileName(const std::string& folder) {
  return folder.starts_with("sentencepiece") ? "tokenizer.model" : "tokenizer.json";
}

// Whatever a damaged file still loads as must work without crashing.
void LoadAndUse(const std::string& file_name, const std::string& contents) {
  const auto tokenizer = LoadFromFiles({{file_name, contents}});
  if (!tokenizer.ok()) {
    ASSERT_THAT(
        tokenizer.status().code(),
        AnyOf(StatusCode::kInvalidArgument, StatusCode::kDataLoss, StatusCode::kUnimplemented)
    );
    ASSERT_THAT(Complaint(tokenizer), HasSubstr(file_name));
    return;
  }
  const auto ids =
      (*tokenizer)->Encode("In the ＡＢ beginning\n\n 😀 ﷺ</s> 12", {.parse_special = true});
  if (ids.ok()) {
    EXPECT_TRUE((*tokenizer)->Decode(*ids).ok());
  }
}

class Rubbish : public testing::TestWithParam<std::string> {
 protected:
  std::string file_name_ = FileName(GetParam());
  std::string contents_ = ReadAll(DataFolder(GetParam()) / file_name_);
};

TEST_P(Rubbish, SurvivesATruncatedFile) {
  std::mt19937 random(1);
  for (int round = 0; round < 40; ++round) {
    LoadAndUse(file_name_, contents_.substr(0, random() % contents_.size()));
  }
}

TEST_P(Rubbish, SurvivesDamagedBytes) {
  std::mt19937 random(2);
  for (int round = 0; round < 80; ++round) {
    std::string damaged = contents_;
    for (uint32_t i = random() % 8 + 1; i > 0; --i) {
      damaged[random() % damaged.size()] = static_cast<char>(random() % 256);
    }
    LoadAndUse(file_name_, damaged);
  }
}

TEST_P(Rubbish, SurvivesRandomBytes) {
  std::mt19937 random(3);
  for (int round = 0; round < 100; ++round) {
    std::string noise;
    for (uint32_t i = random() % 200; i > 0; --i) {
      noise += static_cast<char>(random() % 256);
    }
    LoadAndUse(file_name_, noise);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Tokenizers,
    Rubbish,
    testing::ValuesIn(ConformanceFolders()),
    [](const auto& test) { return test.param; }
);

// One of every part that is read.
constexpr const char* kEveryPart = R"({
  "added_tokens": [{"id": 5, "content": "</s>", "single_word": false, "lstrip": true, "rstrip": true,
                    "normalized": true, "special": true}],
  "normalizer": {"type": "Sequence", "normalizers": [
    {"type": "Prepend", "prepend": "▁"},
    {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]},
  "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
    {"type": "Split", "pattern": {"Regex": "\\s+"}, "behavior": "Isolated", "invert": false},
    {"type": "Digits", "individual_digits": true},
    {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": true}]},
  "post_processor": {"type": "TemplateProcessing",
    "single": [{"SpecialToken": {"id": "</s>"}}, {"Sequence": {"id": "A"}}],
    "special_tokens": {"</s>": {"id": "</s>", "ids": [5]}}},
  "decoder": {"type": "Sequence", "decoders": [
    {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
    {"type": "ByteFallback"}, {"type": "Fuse"},
    {"type": "Strip", "content": " ", "start": 1, "stop": 0},
    {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first"}]},
  "model": {"type": "BPE", "unk_token": "<unk>", "fuse_unk": true, "byte_fallback": false, "dropout": null,
            "continuing_subword_prefix": "", "end_of_word_suffix": "", "ignore_merges": true,
            "vocab": {"<unk>": 0, "a": 1, "b": 2, "ab": 3, "▁": 4}, "merges": ["a b", ["a", "b"]]}
})";

void ReplaceEachValue(nlohmann::json& document, nlohmann::json& value) {
  const std::vector<nlohmann::json> substitutes = {
      nullptr, true, -3, 1e300, "text", nlohmann::json::array(), nlohmann::json::object()};
  for (const nlohmann::json& substitute : substitutes) {
    const nlohmann::json kept = std::exchange(value, substitute);
    LoadAndUse("tokenizer.json", document.dump());
    value = kept;
  }
  if (value.is_structured()) {  // items() of anything else would yield the value itself
    for (auto& child : value.items()) {
      ReplaceEachValue(document, child.value());
    }
  }
}

TEST(RubbishJson, SurvivesTheWrongTypeInEveryField) {
  auto document = nlohmann::json::parse(kEveryPart);
  const auto unchanged = LoadFromFiles({{"tokenizer.json", document.dump()}});
  ASSERT_TRUE(unchanged.ok()) << Complaint(unchanged);

  ReplaceEachValue(document, document);
}

TEST(RubbishJson, RefusesDeepNesting) {
  const std::string deep(1 << 20, '[');

  EXPECT_EQ(
      LoadFromFiles({{"tokenizer.json", deep}}).status().code(), StatusCode::kInvalidArgument
  );
  EXPECT_EQ(
      LoadFromFiles({{"tokenizer.json", deep + std::string(1 << 20, ']')}}).status().code(),
      StatusCode::kInvalidArgument
  );
}

TEST(RubbishFile, RefusesAFileAboveTheSizeLimit) {
  const std::map<std::string, std::string> files = {{"tokenizer.model", ""}};
  const TemporaryModelFolder folder(files);
  // A hole in the file system: it takes no space on the disk.
  std::filesystem::resize_file(folder.Path() / "tokenizer.model", kMaxTokenizerFileBytes + 1);

  const auto tokenizer = LoadTokenizer(folder.Path(), {});

  EXPECT_EQ(tokenizer.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(Complaint(tokenizer), HasSubstr("has 268435457 bytes"));
}

TEST(RubbishFile, RefusesAFolderInPlaceOfAFile) {
  const TemporaryModelFolder folder(std::map<std::string, std::string>{});
  std::filesystem::create_directory(folder.Path() / "tokenizer.json");

  EXPECT_FALSE(LoadTokenizer(folder.Path(), {}).ok());
}

}  // namespace
}  // namespace switchyard
