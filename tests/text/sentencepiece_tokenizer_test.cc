#include "text/sentencepiece_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "tests/text/sentencepiece_file.h"
#include "tests/text/tokenizer_folder.h"

namespace switchyard {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using Ids = std::vector<int32_t>;

// unk 0, <s> 1, </s> 2, a 3, b 4, ab 5, ▁ 6, <turn> 7 (user defined)
std::vector<FilePiece> SmallPieces() {
  return {
      {"<unk>", 0, 2},
      {"<s>", 0, 3},
      {"</s>", 0, 3},
      {"a", -3, 1},
      {"b", -4, 1},
      {"ab", -1, 1},
      {"▁", -5, 1},
      {"<turn>", 0, 4}};
}

StatusOr<std::unique_ptr<Tokenizer>> LoadPieces(
    const std::vector<FilePiece>& pieces, const std::string& trainer_spec = "\x18\x02"
) {
  return LoadFromFiles({{"tokenizer.model", SentencePieceFile(pieces, trainer_spec)}});
}

Ids Encoded(const Tokenizer& tokenizer, const std::string& text, const EncodeOptions& options) {
  const auto ids = tokenizer.Encode(text, options);
  EXPECT_TRUE(ids.ok()) << Complaint(ids);
  return ids.ok() ? *ids : Ids{};
}

TEST(SentencePieceTokenizer, PutsTheBosTokenInFrontByDefaultOrOnRequest) {
  const auto plain = LoadFromData("sentencepiece_bpe");
  const auto adding = LoadFromData("sentencepiece_bpe", {.add_bos = true});
  const Ids without = Encoded(*plain, "God", {});

  EXPECT_FALSE(plain->AddsBos());
  EXPECT_TRUE(adding->AddsBos());
  EXPECT_EQ(plain->BosId(), 1);
  EXPECT_EQ(plain->EosId(), 2);
  Ids with = without;
  with.insert(with.begin(), 1);
  EXPECT_EQ(Encoded(*adding, "God", {}), with);
  EXPECT_EQ(Encoded(*plain, "God", {.add_bos = true}), with);
  EXPECT_EQ(Encoded(*adding, "God", {.add_bos = false}), without);
}

TEST(SentencePieceTokenizer, TurnsSpelledControlTokensIntoIdsOnlyWhenAsked) {
  const auto tokenizer = LoadPieces(SmallPieces());
  ASSERT_TRUE(tokenizer.ok()) << Complaint(tokenizer);

  // Each stretch of text gets the dummy prefix; characters that no piece spells are one unknown
  // token.
  EXPECT_THAT(Encoded(**tokenizer, "ab</s>b", {.parse_special = true}), ElementsAre(6, 5, 2, 6, 4));
  EXPECT_THAT(Encoded(**tokenizer, "ab</s>b", {}), ElementsAre(6, 5, 0, 4));
  EXPECT_THAT(Encoded(**tokenizer, "</s>", {.parse_special = true}), ElementsAre(2));
}

TEST(SentencePieceTokenizer, PutsNoMetaspaceInFrontOfTextThatContinuesOther) {
  const auto tokenizer = LoadPieces(SmallPieces());
  ASSERT_TRUE(tokenizer.ok()) << Complaint(tokenizer);

  EXPECT_THAT(Encoded(**tokenizer, "ab", {.continues_text = true}), ElementsAre(5));
  EXPECT_THAT(Encoded(**tokenizer, " ab", {.continues_text = true}), ElementsAre(6, 5));
  // Only the first stretch continues anything.
  EXPECT_THAT(
      Encoded(**tokenizer, "ab</s>b", {.parse_special = true, .continues_text = true}),
      ElementsAre(5, 2, 6, 4)
  );
}

TEST(SentencePieceTokenizer, MatchesUserDefinedPiecesOnlyWhenAsked) {
  const auto tokenizer = LoadPieces(SmallPieces());
  ASSERT_TRUE(tokenizer.ok()) << Complaint(tokenizer);

  EXPECT_THAT(Encoded(**tokenizer, "a<turn>b", {.parse_special = true}), ElementsAre(6, 3, 7, 4));
  EXPECT_THAT(Encoded(**tokenizer, "a<turn>b", {}), ElementsAre(6, 3, 0, 4));
  EXPECT_FALSE((*tokenizer)->IsControl(7));
}

TEST(SentencePieceTokenizer, NeverYieldsAControlPieceOfOneCharacter) {
  std::vector<FilePiece> pieces = SmallPieces();
  pieces.push_back({"§", 0, 3});
  const auto tokenizer = LoadPieces(pieces);
  ASSERT_TRUE(tokenizer.ok()) << Complaint(tokenizer);

  EXPECT_THAT(Encoded(**tokenizer, "a§b", {}), ElementsAre(6, 3, 0, 4));
  EXPECT_THAT(Encoded(**tokenizer, "§", {.parse_special = true}), ElementsAre(8));
}

TEST(SentencePieceTokenizer, GivesTheBytesOfEachKindOfToken) {
  const auto tokenizer = LoadFromData("sentencepiece_bpe");

  EXPECT_EQ(tokenizer->TokenBytes(1), "");
  EXPECT_TRUE(tokenizer->IsControl(1));
  EXPECT_EQ(tokenizer->TokenPiece(3 + 0x0A), "<0x0A>");
  EXPECT_EQ(tokenizer->TokenBytes(3 + 0x0A), "\n");
  EXPECT_EQ(tokenizer->TokenBytes(3 + 0xE2), "\xE2");
  EXPECT_EQ(tokenizer->TokenBytes(0), " \u2047 ");
  const Ids word = Encoded(*tokenizer, "the", {});
  EXPECT_EQ(tokenizer->TokenPiece(word.at(0)), "▁the");
  EXPECT_EQ(tokenizer->TokenBytes(word.at(0)), " the");
}

TEST(SentencePieceTokenizer, EncodesALongTextQuickly) {
  const auto tokenizer = LoadFromData("sentencepiece_bpe");
  const std::string text(1 << 20, 'a');

  EXPECT_GT(Encoded(*tokenizer, text, {}).size(), 1U);
}

TEST(SentencePieceTokenizer, NamesThePieceThatIsWrong) {
  std::vector<FilePiece> empty = SmallPieces();
  empty[3].text = "";
  std::vector<FilePiece> twice = SmallPieces();
  twice[4].text = "a";
  std::vector<FilePiece> infinite = SmallPieces();
  infinite[3].score = std::numeric_limits<float>::infinity();
  std::vector<FilePiece> not_utf8 = SmallPieces();
  not_utf8[3].text = "\xFF";
  std::vector<FilePiece> no_unknown = SmallPieces();
  no_unknown[0].type = 1;

  EXPECT_THAT(Complaint(LoadPieces(empty)), HasSubstr("tokenizer.model: pieces[3].piece is empty"));
  EXPECT_THAT(
      Complaint(LoadPieces(twice)),
      HasSubstr("pieces[4] gives the token \"a\" the id 4, but it already has the id 3")
  );
  EXPECT_THAT(Complaint(LoadPieces(infinite)), HasSubstr("pieces[3].score is inf"));
  EXPECT_THAT(Complaint(LoadPieces(not_utf8)), HasSubstr("pieces[3].piece is not valid UTF-8"));
  EXPECT_THAT(Complaint(LoadPieces(no_unknown)), HasSubstr("pieces has 0 unknown pieces"));
}

TEST(SentencePieceTokenizer, RefusesByteFallbackWithMissingBytes) {
  std::vector<FilePiece> pieces = SmallPieces();
  pieces.push_back({"<0x00>", 0, 6});

  EXPECT_THAT(
      Complaint(LoadPieces(pieces, "\x18\x02\x98\x02\x01")),
      AllOf(HasSubstr("pieces lacks \"<0x01>\""), HasSubstr("byte_fallback"))
  );
  EXPECT_THAT(Complaint(LoadPieces(pieces)), HasSubstr("pieces[8] is a byte piece"));
}

TEST(SentencePieceTokenizer, NamesTheModelTypeItDoesNotRead) {
  const auto word_model = LoadPieces(SmallPieces(), "\x18\x03");

  EXPECT_EQ(word_model.status().code(), StatusCode::kUnimplemented);
  EXPECT_THAT(Complaint(word_model), HasSubstr("trainer_spec.model_type is 3"));
}

}  // namespace
}  // namespace switchyard
