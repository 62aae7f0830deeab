#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "text/prefix_index.h"
#include "text/sentencepiece_model.h"

namespace switchyard {

// Cuts normalized text into pieces. Immutable and thread-safe.
class SentencePieceSegmenter {
 public:
  struct Segment {
    std::string_view text;
    int32_t id = 0;  // the unknown piece's for a character that no piece spells
  };

  virtual ~SentencePieceSegmenter() = default;

  // `user_defined` are pieces that are taken whole wherever the text spells them; pass an empty
  // index to treat such text like any other. Never yields control or byte pieces, whatever the text
  // spells. The segments borrow `normalized` and cover it without gaps.
  virtual std::vector<Segment> Split(std::string_view normalized, const PrefixIndex& user_defined)
      const = 0;
};

// As `model.algorithm` says. Requires: the model passed the checks of ParseSentencePieceModel.
std::unique_ptr<SentencePieceSegmenter> MakeBpeSegmenter(const SentencePieceModel& model);
std::unique_ptr<SentencePieceSegmenter> MakeUnigramSegmenter(const SentencePieceModel& model);

}  // namespace switchyard
