#include "text/streaming_detokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <utility>

#include "text/utf8.h"

namespace switchyard {
namespace {

// Token i adds the i-th of the given byte strings.
class FakeTokenizer final : public Tokenizer {
 public:
  explicit FakeTokenizer(std::vector<std::string> tokens) : tokens_(std::move(tokens)) {}

  StatusOr<std::vector<int32_t>> Encode(std::string_view, const EncodeOptions&) const override {
    return Unimplemented("not needed");
  }
  StatusOr<std::string> Decode(std::span<const int32_t>) const override {
    return Unimplemented("not needed");
  }
  std::string_view TokenBytes(int32_t id) const override {
    return tokens_[static_cast<size_t>(id)];
  }
  std::string_view TokenPiece(int32_t id) const override { return TokenBytes(id); }
  bool IsControl(int32_t) const override { return false; }
  int32_t VocabularySize() const override { return static_cast<int32_t>(tokens_.size()); }
  bool AddsBos() const override { return false; }
  std::optional<int32_t> BosId() const override { return std::nullopt; }
  std::optional<int32_t> EosId() const override { return std::nullopt; }

 private:
  std::vector<std::string> tokens_;
};

TEST(StreamingDetokenizer, HoldsACharacterUntilItsLastByte) {
  const FakeTokenizer tokenizer({"a\xF0", "\x9F", "\x98", "\x80z"});
  StreamingDetokenizer detokenizer(tokenizer);

  EXPECT_EQ(detokenizer.Append(0), "a");
  EXPECT_EQ(detokenizer.Append(1), "");
  EXPECT_EQ(detokenizer.Append(2), "");
  EXPECT_EQ(detokenizer.Append(3), "😀z");
  EXPECT_EQ(detokenizer.Flush(), "");
}

TEST(StreamingDetokenizer, ReplacesBytesThatCanNeverBecomeACharacter) {
  const FakeTokenizer tokenizer({"\xE2\x82", "x", "\x80\xFF"});
  StreamingDetokenizer detokenizer(tokenizer);

  EXPECT_EQ(detokenizer.Append(0), "");
  EXPECT_EQ(detokenizer.Append(1), "\uFFFDx");
  EXPECT_EQ(detokenizer.Append(2), "\uFFFD\uFFFD");
}

TEST(StreamingDetokenizer, FlushesAnIncompleteCharacterOnce) {
  const FakeTokenizer tokenizer({"\xF0\x9F\x98"});
  StreamingDetokenizer detokenizer(tokenizer);
  EXPECT_EQ(detokenizer.Append(0), "");

  EXPECT_EQ(detokenizer.Flush(), "\uFFFD");
  EXPECT_EQ(detokenizer.Flush(), "");
}

TEST(StreamingDetokenizer, GivesTheSameTextHoweverTheBytesAreCutIntoTokens) {
  std::mt19937 random(11);
  // Leads and continuations of every length, so that whole, cut and impossible characters all
  // occur.
  const std::string alphabet = "a\x80\xBF\xC3\xA9\xE2\x82\xAC\xED\xA0\xF0\x9F\x98\x90\xF4\xFF";
  for (int round = 0; round < 2000; ++round) {
    std::string bytes;
    for (size_t i = random() % 24; i > 0; --i) {
      bytes += alphabet[random() % alphabet.size()];
    }
    std::vector<std::string> tokens;
    for (size_t begin = 0; begin < bytes.size();) {
      const size_t length = random() % 5;
      tokens.push_back(bytes.substr(begin, length));
      begin += length;
    }
    const FakeTokenizer tokenizer(tokens);
    StreamingDetokenizer detokenizer(tokenizer);
    std::string streamed;

    for (int32_t id = 0; id < tokenizer.VocabularySize(); ++id) {
      streamed += detokenizer.Append(id);
      ASSERT_FALSE(FindInvalidUtf8(streamed));
    }
    streamed += detokenizer.Flush();

    ASSERT_EQ(streamed, ReplaceInvalidUtf8(bytes));
  }
}

}  // namespace
}  // namespace switchyard
