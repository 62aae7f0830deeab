#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/text/tokenizer_folder.h"
#include "text/streaming_detokenizer.h"
#include "text/tokenizer.h"
#include "text/utf8.h"

namespace switchyard {
namespace {

// Expected values come from the SentencePiece and Hugging Face libraries; see
// data/make_conformance.py.
class Conformance : public testing::TestWithParam<std::string> {
 protected:
  Conformance()
      : tokenizer_(LoadFromData(GetParam())),
        recorded_(nlohmann::json::parse(ReadAll(DataFolder(GetParam()) / "conformance.json"))) {}

  void ExpectEncodings(const std::string& kind, bool parse_special) {
    for (const nlohmann::json& item : recorded_.at(kind)) {
      const auto text = item.at("text").get<std::string>();

      const auto ids = tokenizer_->Encode(text, {.add_bos = false, .parse_special = parse_special});

      ASSERT_TRUE(ids.ok()) << Complaint(ids);
      EXPECT_EQ(*ids, item.at("ids").get<std::vector<int32_t>>()) << kind << " " << item.dump();
    }
  }

  void ExpectDecodings(const std::string& kind) {
    for (const nlohmann::json& item : recorded_.at(kind)) {
      const auto ids = item.at("ids").get<std::vector<int32_t>>();

      const auto decoded = tokenizer_->Decode(ids);

      ASSERT_TRUE(decoded.ok()) << Complaint(decoded);
      const auto& expected = item.contains("decoded") ? item.at("decoded") : item.at("text");
      EXPECT_EQ(*decoded, expected.get<std::string>()) << kind << " " << item.dump();
    }
  }

  std::unique_ptr<Tokenizer> tokenizer_;
  nlohmann::json recorded_;
};

TEST_P(Conformance, EncodesAwkwardTextsAsTheLibraryDoes) {
  EXPECT_GE(recorded_.at("cases").size(), 250U);
  ExpectEncodings("cases", false);
}

TEST_P(Conformance, EncodesSpelledSpecialTokensAsTheLibraryDoesWhenAsked) {
  ExpectEncodings("special_cases", true);
}

TEST_P(Conformance, DecodesEncodingsAsTheLibraryDoes) {
  ExpectDecodings("cases");
  ExpectDecodings("special_cases");
}

TEST_P(Conformance, DecodesSequencesThatNoEncoderGivesAsTheLibraryDoes) {
  EXPECT_GE(recorded_.at("decode_cases").size(), 80U);
  ExpectDecodings("decode_cases");
}

TEST_P(Conformance, NeverEncodesUserTextAsControlTokens) {
  for (int32_t id = 0; id < tokenizer_->VocabularySize(); ++id) {
    if (!tokenizer_->IsControl(id) || tokenizer_->TokenPiece(id) == "<unk>") {
      continue;
    }
    const std::string piece(tokenizer_->TokenPiece(id));

    const auto ids = tokenizer_->Encode(piece + " " + piece + "x" + piece, {.add_bos = false});

    ASSERT_TRUE(ids.ok()) << Complaint(ids);
    EXPECT_THAT(*ids, testing::Not(testing::Contains(id))) << piece;
  }
}

TEST_P(Conformance, PutsNoSpaceIntoTextThatContinuesOther) {
  for (const std::string text : {"God", " God", "God was", "od was"}) {
    const auto ids = tokenizer_->Encode(text, {.add_bos = false, .continues_text = true});
    ASSERT_TRUE(ids.ok()) << Complaint(ids);
    std::string bytes;

    for (const int32_t id : *ids) {
      bytes += tokenizer_->TokenBytes(id);
    }

    EXPECT_EQ(bytes, text);
  }
}

TEST_P(Conformance, StreamsEveryTokenAsItsBytes) {
  StreamingDetokenizer detokenizer(*tokenizer_);
  std::string bytes;
  std::string streamed;

  for (int32_t id = 0; id < tokenizer_->VocabularySize(); ++id) {
    bytes += tokenizer_->TokenBytes(id);
    streamed += detokenizer.Append(id);
    ASSERT_FALSE(FindInvalidUtf8(streamed)) << "after token " << id;
  }
  streamed += detokenizer.Flush();

  EXPECT_EQ(streamed, ReplaceInvalidUtf8(bytes));
}

TEST_P(Conformance, StreamsAnEncodedTextAsItDecodesApartFromThePrefixSpace) {
  const std::string text = "In the beginning 😀👨‍👩‍👧 the 地 was \n\n  מים .";
  const auto ids = tokenizer_->Encode(text, {.add_bos = false});
  ASSERT_TRUE(ids.ok()) << Complaint(ids);
  StreamingDetokenizer detokenizer(*tokenizer_);
  std::string streamed;

  for (const int32_t id : *ids) {
    streamed += detokenizer.Append(id);
  }
  streamed += detokenizer.Flush();

  const auto decoded = tokenizer_->Decode(*ids);
  ASSERT_TRUE(decoded.ok()) << Complaint(decoded);
  EXPECT_THAT(streamed, testing::AnyOf(*decoded, " " + *decoded));
}

TEST_P(Conformance, RefusesInvalidUtf8ByOffset) {
  const auto ids = tokenizer_->Encode("ab\xC3(", {});

  EXPECT_EQ(ids.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(Complaint(ids), testing::HasSubstr("byte offset 2 (0xC3)"));
}

TEST_P(Conformance, RefusesToDecodeIdsOutsideTheVocabulary) {
  const int32_t size = tokenizer_->VocabularySize();
  const std::vector<int32_t> too_large = {0, size};
  const std::vector<int32_t> negative = {-1};

  EXPECT_EQ(tokenizer_->Decode(too_large).status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(
      Complaint(tokenizer_->Decode(negative)),
      Concat("token id -1 is outside the vocabulary; ids lie in [0, ", size, ")")
  );
}

INSTANTIATE_TEST_SUITE_P(
    Tokenizers,
    Conformance,
    testing::ValuesIn(ConformanceFolders()),
    [](const auto& test) { return test.param; }
);

}  // namespace
}  // namespace switchyard
