#include "text/sentencepiece_tokenizer.h"

#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "text/byte_piece.h"
#include "text/prefix_index.h"
#include "text/sentencepiece_model.h"
#include "text/sentencepiece_normalizer.h"
#include "text/sentencepiece_segmenter.h"
#include "text/text_file.h"
#include "text/utf8.h"

namespace switchyard {
namespace {

using PieceType = SentencePieceModel::PieceType;
using Place = SentencePieceNormalizer::Place;

std::string SpacesForMetaspaces(std::string_view piece) {
  std::string text;
  while (!piece.empty()) {
    const bool is_metaspace = piece.starts_with(kMetaspace);
    text += is_metaspace ? ' ' : piece.front();
    piece.remove_prefix(is_metaspace ? kMetaspace.size() : 1);
  }
  return text;
}

// The bytes of consecutive byte pieces. Unlike ReplaceInvalidUtf8, and like the library, every byte
// that is not part of a character becomes a U+FFFD of its own.
void AppendBytePieces(std::string_view bytes, std::string& text) {
  while (!bytes.empty()) {
    const Utf8Step step = NextUtf8(bytes);
    const bool is_character = step.kind == Utf8Kind::kCharacter;
    text += is_character ? bytes.substr(0, step.bytes) : kReplacementCharacter;
    bytes.remove_prefix(is_character ? step.bytes : 1);
  }
}

class SentencePieceTokenizer final : public Tokenizer {
 public:
  // Requires: the model passed ParseSentencePieceModel.
  SentencePieceTokenizer(SentencePieceModel model, SentencePieceNormalizer normalizer);

  // Builds the vocabulary; fails when two tokens are spelled alike.
  Status Initialize(const TokenizerSettings& settings, const std::string& file_name);

  StatusOr<std::vector<int32_t>> Encode(std::string_view text, const EncodeOptions& options)
      const override;
  StatusOr<std::string> Decode(std::span<const int32_t> ids) const override;

  std::string_view TokenBytes(int32_t id) const override { return bytes_[Index(id)]; }
  std::string_view TokenPiece(int32_t id) const override { return vocabulary_.Piece(id); }
  bool IsControl(int32_t id) const override { return Type(id) == PieceType::kControl; }
  int32_t VocabularySize() const override { return vocabulary_.Size(); }
  bool AddsBos() const override { return sequence_tokens_.add_bos.value_or(false); }
  std::optional<int32_t> BosId() const override { return sequence_tokens_.bos_id; }
  std::optional<int32_t> EosId() const override { return sequence_tokens_.eos_id; }

 private:
  size_t Index(int32_t id) const {
    CHECK(id >= 0 && id < VocabularySize()) << "id=" << id << " size=" << VocabularySize();
    return static_cast<size_t>(id);
  }
  PieceType Type(int32_t id) const { return model_.pieces[Index(id)].type; }
  std::string BytesOf(const SentencePieceModel::Piece& piece) const;
  std::optional<int32_t> FindControl(const std::string& piece) const;
  void AppendEncoded(
      std::string_view text, Place place, const PrefixIndex& user_defined, std::vector<int32_t>& ids
  ) const;
  std::string_view DecodedPiece(int32_t id, bool may_strip, bool& stripped_prefix) const;

  SentencePieceModel model_;
  SentencePieceNormalizer normalizer_;
  std::unique_ptr<SentencePieceSegmenter> segmenter_;
  Vocabulary vocabulary_;
  std::vector<std::string> bytes_;       // by id
  std::array<int32_t, 256> byte_ids_{};  // by byte; meaningful with byte fallback only
  PrefixIndex control_;
  PrefixIndex user_defined_;
  PrefixIndex nothing_;
  SequenceTokens sequence_tokens_;
};

SentencePieceTokenizer::SentencePieceTokenizer(
    SentencePieceModel model, SentencePieceNormalizer normalizer
)
    : model_(std::move(model)), normalizer_(std::move(normalizer)) {
  const bool is_bpe = model_.algorithm == SentencePieceModel::Algorithm::kBpe;
  segmenter_ = is_bpe ? MakeBpeSegmenter(model_) : MakeUnigramSegmenter(model_);
}

std::string SentencePieceTokenizer::BytesOf(const SentencePieceModel::Piece& piece) const {
  switch (piece.type) {
    case PieceType::kControl:
      return "";
    case PieceType::kUnknown:
      return model_.unknown_surface;
    case PieceType::kByte:
      return std::string(1, static_cast<char>(*ParseBytePiece(piece.text)));
    default:
      return SpacesForMetaspaces(piece.text);
  }
}

Status SentencePieceTokenizer::Initialize(
    const TokenizerSettings& settings, const std::string& file_name
) {
  std::vector<std::pair<std::string, int32_t>> control;
  std::vector<std::pair<std::string, int32_t>> user_defined;
  for (size_t i = 0; i < model_.pieces.size(); ++i) {
    const SentencePieceModel::Piece& piece = model_.pieces[i];
    const auto id = static_cast<int32_t>(i);
    RETURN_IF_ERROR(vocabulary_.Add(piece.text, id, Concat(file_name, ": pieces[", i, "]")));
    bytes_.push_back(BytesOf(piece));
    if (piece.type == PieceType::kControl) {
      control.emplace_back(piece.text, id);
    } else if (piece.type == PieceType::kUserDefined) {
      user_defined.emplace_back(piece.text, id);
    } else if (piece.type == PieceType::kByte) {
      byte_ids_[*ParseBytePiece(piece.text)] = id;
    }
  }
  control_ = PrefixIndex(std::move(control));
  user_defined_ = PrefixIndex(std::move(user_defined));
  SequenceTokens own;
  own.bos_id = FindControl(model_.bos_piece);
  own.eos_id = FindControl(model_.eos_piece);
  ASSIGN_OR_RETURN(sequence_tokens_, ResolveSequenceTokens(own, settings, vocabulary_));
  return OkStatus();
}

std::optional<int32_t> SentencePieceTokenizer::FindControl(const std::string& piece) const {
  const std::optional<int32_t> id = vocabulary_.Find(piece);
  return id && IsControl(*id) ? id : std::nullopt;
}

void SentencePieceTokenizer::AppendEncoded(
    std::string_view text, Place place, const PrefixIndex& user_defined, std::vector<int32_t>& ids
) const {
  const std::string normalized = normalizer_.Normalize(text, place, user_defined);
  bool follows_unknown = false;
  for (const auto& segment : segmenter_->Split(normalized, user_defined)) {
    const bool is_unknown = Type(segment.id) == PieceType::kUnknown;
    if (is_unknown && model_.byte_fallback) {
      for (const char byte : segment.text) {
        ids.push_back(byte_ids_[static_cast<uint8_t>(byte)]);
      }
    } else if (!is_unknown || !follows_unknown) {  // a run of unknown characters is one token
      ids.push_back(segment.id);
    }
    follows_unknown = is_unknown;
  }
}

StatusOr<std::vector<int32_t>> SentencePieceTokenizer::Encode(
    std::string_view text, const EncodeOptions& options
) const {
  RETURN_IF_ERROR(CheckEncodable(text));
  std::vector<int32_t> ids;
  ASSIGN_OR_RETURN(const std::optional<int32_t> bos, BosFor(options, sequence_tokens_));
  if (bos) {
    ids.push_back(*bos);
  }
  Place place = options.continues_text ? Place::kContinuation : Place::kStart;
  if (!options.parse_special) {
    AppendEncoded(text, place, nothing_, ids);
    return ids;
  }
  size_t begin = 0;
  for (size_t end = 0; end < text.size();) {
    const auto match = control_.Longest(text.substr(end));
    if (!match) {
      end += NextUtf8(text.substr(end)).bytes;
      continue;
    }
    AppendEncoded(text.substr(begin, end - begin), place, user_defined_, ids);
    place = Place::kStart;
    ids.push_back(match->id);
    end += match->bytes;
    begin = end;
  }
  AppendEncoded(text.substr(begin), place, user_defined_, ids);
  return ids;
}

// The dummy prefix space is dropped from the first piece that has text, or with
// remove_extra_whitespaces from all leading ones. `stripped_prefix` says whether this piece gave up
// the one space there is to give.
std::string_view SentencePieceTokenizer::DecodedPiece(
    int32_t id, bool may_strip, bool& stripped_prefix
) const {
  std::string_view text = TokenBytes(id);
  stripped_prefix = false;
  const PieceType type = Type(id);
  const bool strips = model_.add_dummy_prefix || model_.remove_extra_whitespaces;
  const bool is_ordinary = type == PieceType::kNormal || type == PieceType::kUserDefined;
  if (may_strip && strips && is_ordinary && vocabulary_.Piece(id).starts_with(kMetaspace)) {
    text.remove_prefix(1);
    stripped_prefix = !model_.remove_extra_whitespaces;
  }
  return text;
}

StatusOr<std::string> SentencePieceTokenizer::Decode(std::span<const int32_t> ids) const {
  RETURN_IF_ERROR(CheckIds(ids, VocabularySize()));
  std::string text;
  std::string pending_bytes;
  bool may_strip = true;
  bool stripped_prefix = false;
  for (const int32_t id : ids) {
    if (Type(id) == PieceType::kByte) {
      pending_bytes += TokenBytes(id);
      continue;
    }
    AppendBytePieces(pending_bytes, text);
    pending_bytes.clear();
    may_strip = may_strip && !stripped_prefix && text.empty();
    text += DecodedPiece(id, may_strip, stripped_prefix);
  }
  AppendBytePieces(pending_bytes, text);
  return text;
}

}  // namespace

StatusOr<std::unique_ptr<Tokenizer>> LoadSentencePieceTokenizer(
    const std::filesystem::path& path, const TokenizerSettings& settings
) {
  const std::string file_name = path.string();
  ASSIGN_OR_RETURN(const std::string contents, ReadTokenizerFile(path));
  ASSIGN_OR_RETURN(SentencePieceModel model, ParseSentencePieceModel(contents, file_name));
  ASSIGN_OR_RETURN(auto normalizer, SentencePieceNormalizer::Create(model, file_name));
  auto tokenizer =
      std::make_unique<SentencePieceTokenizer>(std::move(model), std::move(normalizer));
  RETURN_IF_ERROR(tokenizer->Initialize(settings, file_name));
  return std::unique_ptr<Tokenizer>(std::move(tokenizer));
}

}  // namespace switchyard
