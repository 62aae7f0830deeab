#include <algorithm>
#include <optional>
#include <string>

#include "text/bpe_merge.h"
#include "text/sentencepiece_segmenter.h"
#include "text/utf8.h"
#include "text/vocabulary.h"

namespace switchyard {
namespace {

using PieceType = SentencePieceModel::PieceType;

// Starts from single characters and joins the neighbours whose joint spelling has the highest
// score.
class BpeSegmenter final : public SentencePieceSegmenter {
 public:
  explicit BpeSegmenter(const SentencePieceModel& model) {
    scores_.reserve(model.pieces.size());
    for (size_t i = 0; i < model.pieces.size(); ++i) {
      const SentencePieceModel::Piece& piece = model.pieces[i];
      const auto id = static_cast<int32_t>(i);
      scores_.push_back(piece.score);
      if (piece.type == PieceType::kNormal) {
        ids_.emplace(piece.text, id);
      } else if (piece.type == PieceType::kUnknown) {
        unknown_id_ = id;
      }
    }
  }

  std::vector<Segment> Split(std::string_view normalized, const PrefixIndex& user_defined)
      const override {
    std::vector<BpeSymbol> symbols = Characters(normalized, user_defined);
    MergeSymbols(symbols, [&](const BpeSymbol& left, const BpeSymbol& right) {
      const std::optional<int32_t> id =
          Find(normalized.substr(left.begin, left.bytes + right.bytes));
      return id ? std::optional<BpeMerge>({.id = *id, .cost = -Score(*id)}) : std::nullopt;
    });
    std::vector<Segment> segments;
    segments.reserve(symbols.size());
    for (const BpeSymbol& symbol : symbols) {
      segments.push_back(
          {.text = normalized.substr(symbol.begin, symbol.bytes),
           .id = symbol.id < 0 ? unknown_id_ : symbol.id}
      );
    }
    return segments;
  }

 private:
  // The start: single characters, known or not. An unknown one can still take part in a merge,
  // because merges go by the joint spelling.
  std::vector<BpeSymbol> Characters(std::string_view normalized, const PrefixIndex& user_defined)
      const {
    std::vector<BpeSymbol> symbols;
    symbols.reserve(normalized.size());
    size_t begin = 0;
    while (begin < normalized.size()) {
      const std::string_view rest = normalized.substr(begin);
      BpeSymbol symbol{.begin = begin};
      if (const auto match = user_defined.Longest(rest)) {
        symbol.id = match->id;
        symbol.bytes = match->bytes;
        symbol.is_frozen = true;
      } else {
        symbol.bytes = NextUtf8(rest).bytes;
        symbol.id = Find(rest.substr(0, symbol.bytes)).value_or(-1);
      }
      begin += symbol.bytes;
      symbols.push_back(symbol);
    }
    return symbols;
  }

  std::optional<int32_t> Find(std::string_view text) const {
    const auto found = ids_.find(text);
    return found == ids_.end() ? std::nullopt : std::optional<int32_t>(found->second);
  }
  double Score(int32_t id) const { return scores_[static_cast<size_t>(id)]; }

  PieceIds ids_;               // normal pieces only
  std::vector<float> scores_;  // by id
  int32_t unknown_id_ = 0;
};

}  // namespace

std::unique_ptr<SentencePieceSegmenter> MakeBpeSegmenter(const SentencePieceModel& model) {
  return std::make_unique<BpeSegmenter>(model);
}

}  // namespace switchyard
