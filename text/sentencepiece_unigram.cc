#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "text/sentencepiece_segmenter.h"
#include "text/utf8.h"

namespace switchyard {
namespace {

using PieceType = SentencePieceModel::PieceType;

// How much worse than the rarest piece an unknown character counts; the library's constant.
constexpr float kUnknownPenalty = 10.0F;

// Finds the segmentation with the largest sum of scores (Viterbi). Sums are kept in float and
// compared in the library's order, because ties and rounding decide between segmentations that are
// equally likely.
class UnigramSegmenter final : public SentencePieceSegmenter {
 public:
  explicit UnigramSegmenter(const SentencePieceModel& model) {
    std::vector<std::pair<std::string, int32_t>> entries;
    float lowest = std::numeric_limits<float>::max();
    float highest = std::numeric_limits<float>::min();  // as the library starts: never below 0
    for (size_t i = 0; i < model.pieces.size(); ++i) {
      const SentencePieceModel::Piece& piece = model.pieces[i];
      const auto id = static_cast<int32_t>(i);
      scores_.push_back(piece.score);
      if (piece.type == PieceType::kNormal) {
        entries.emplace_back(piece.text, id);
        lowest = std::min(lowest, piece.score);
        highest = std::max(highest, piece.score);
      } else if (piece.type == PieceType::kUnknown) {
        unknown_id_ = id;
      }
    }
    pieces_ = PrefixIndex(std::move(entries));
    highest_score_ = highest;
    unknown_score_ = lowest - kUnknownPenalty;
  }

  std::vector<Segment> Split(std::string_view normalized, const PrefixIndex& user_defined)
      const override {
    // best[i] is the best way to cover the first i bytes; only character boundaries are ever built
    // upon.
    std::vector<Path> best(normalized.size() + 1);
    size_t begin = 0;
    while (begin < normalized.size()) {
      const std::string_view rest = normalized.substr(begin);
      const size_t character_bytes = NextUtf8(rest).bytes;
      const float so_far = best[begin].score;
      bool character_is_known = false;
      for (const PrefixIndex::Match& match : pieces_.All(rest)) {
        const double score = scores_[static_cast<size_t>(match.id)];
        Improve(best[begin + match.bytes], {.score_wide = score + so_far, .id = match.id}, begin);
        character_is_known = character_is_known || match.bytes == character_bytes;
      }
      for (const PrefixIndex::Match& match : user_defined.All(rest)) {
        // So much that no way around the piece can win.
        const double score =
            static_cast<double>(static_cast<float>(match.bytes) * highest_score_) - 0.1;
        Improve(best[begin + match.bytes], {.score_wide = score + so_far, .id = match.id}, begin);
        character_is_known = character_is_known || match.bytes == character_bytes;
      }
      if (!character_is_known) {
        const float score = unknown_score_ + so_far;
        Improve(best[begin + character_bytes], {.score_wide = score, .id = unknown_id_}, begin);
      }
      begin += character_bytes;
    }
    return Backtrack(normalized, best);
  }

 private:
  static constexpr size_t kUnreached = std::numeric_limits<size_t>::max();

  // The best way found so far to reach a position.
  struct Path {
    float score = 0;
    int32_t id = 0;             // its last piece
    size_t begin = kUnreached;  // where that piece starts
  };
  struct Step {
    double score_wide = 0;
    int32_t id = 0;
  };

  static void Improve(Path& path, const Step& step, size_t begin) {
    if (path.begin == kUnreached || step.score_wide > path.score) {
      path = {.score = static_cast<float>(step.score_wide), .id = step.id, .begin = begin};
    }
  }

  static std::vector<Segment> Backtrack(std::string_view text, const std::vector<Path>& best) {
    std::vector<Segment> segments;
    size_t end = text.size();
    while (end > 0) {
      const Path& path = best[end];
      segments.push_back({.text = text.substr(path.begin, end - path.begin), .id = path.id});
      end = path.begin;
    }
    std::reverse(segments.begin(), segments.end());
    return segments;
  }

  PrefixIndex pieces_;         // normal pieces only
  std::vector<float> scores_;  // by id
  float highest_score_ = 0;
  float unknown_score_ = 0;
  int32_t unknown_id_ = 0;
};

}  // namespace

std::unique_ptr<SentencePieceSegmenter> MakeUnigramSegmenter(const SentencePieceModel& model) {
  return std::make_unique<UnigramSegmenter>(model);
}

}  // namespace switchyard
