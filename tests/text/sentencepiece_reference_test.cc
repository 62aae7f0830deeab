#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "tests/text/sentencepiece_library.h"
#include "tests/text/tokenizer_folder.h"
#include "text/utf8.h"

namespace switchyard {
namespace {

// Random texts and ids, compared with the library itself.
class SentencePieceReference : public testing::TestWithParam<std::string> {
 protected:
  SentencePieceReference()
      : tokenizer_(LoadFromData(GetParam())),
        library_((DataFolder(GetParam()) / "tokenizer.model").string()) {
    EXPECT_TRUE(library_.IsLoaded());
  }

  std::unique_ptr<Tokenizer> tokenizer_;
  SentencePieceLibrary library_;
};

// Words that the models know, mixed with characters from all over Unicode.
std::string RandomText(std::mt19937& random) {
  static const std::vector<std::string> kWords = {
      "the ",
      "beginning",
      "God",
      " ",
      "  ",
      "\n",
      "and",
      "ing",
      "▁",
      "a",
      "1234 ",
      "＂Ａ",
      "e\u0301",
      "ﬁ"};
  std::string text;
  for (size_t i = random() % 20; i > 0; --i) {
    if (random() % 4 != 0) {
      text += kWords[random() % kWords.size()];
      continue;
    }
    const char32_t code_point = random() % 2 == 0 ? random() % 0x3000 : random() % 0x110000;
    const bool is_surrogate = code_point >= 0xD800 && code_point < 0xE000;
    AppendUtf8(is_surrogate ? U'x' : code_point, text);
  }
  return text;
}

TEST_P(SentencePieceReference, EncodesRandomTextsAlike) {
  std::mt19937 random(3);
  for (int round = 0; round < 3000; ++round) {
    const std::string text = RandomText(random);

    const auto ids = tokenizer_->Encode(text, {.add_bos = false});

    ASSERT_TRUE(ids.ok()) << Complaint(ids);
    ASSERT_EQ(*ids, library_.Encode(text)) << text;
  }
}

TEST_P(SentencePieceReference, DecodesRandomIdsAlike) {
  std::mt19937 random(5);
  const auto size = static_cast<uint32_t>(tokenizer_->VocabularySize());
  for (int round = 0; round < 3000; ++round) {
    std::vector<int32_t> ids;
    for (size_t i = random() % 12; i > 0; --i) {
      // Mostly low ids: control and byte pieces.
      ids.push_back(static_cast<int32_t>(random() % (random() % 3 == 0 ? size : 300)));
    }

    const auto text = tokenizer_->Decode(ids);

    ASSERT_TRUE(text.ok()) << Complaint(text);
    ASSERT_EQ(*text, library_.Decode(ids));
  }
}

TEST_P(SentencePieceReference, KnowsTheSameTokens) {
  ASSERT_EQ(tokenizer_->VocabularySize(), library_.VocabularySize());
  EXPECT_EQ(tokenizer_->BosId(), library_.BosId());
  EXPECT_EQ(tokenizer_->EosId(), library_.EosId());
  for (int32_t id = 0; id < tokenizer_->VocabularySize(); ++id) {
    EXPECT_EQ(tokenizer_->TokenPiece(id), library_.Piece(id));
    EXPECT_EQ(tokenizer_->IsControl(id), library_.IsControl(id));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Models,
    SentencePieceReference,
    testing::Values("sentencepiece_bpe", "sentencepiece_nmt_nfkc", "sentencepiece_unigram"),
    [](const auto& test) { return test.param; }
);

}  // namespace
}  // namespace switchyard
