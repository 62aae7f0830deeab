#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace switchyard {

// What a SentencePiece .model file says, as far as encoding and decoding need it. The file is a
// serialized protocol buffer; it is read here rather than by libsentencepiece because Debian's
// build of that library exports a protobuf runtime of its own (3.14), with which no process that
// also holds libprotobuf 3.21 starts.
struct SentencePieceModel {
  // Numbered as in the file.
  enum class PieceType {
    kNormal = 1,
    kUnknown = 2,
    kControl = 3,
    kUserDefined = 4,
    kUnused = 5,
    kByte = 6,
  };
  enum class Algorithm { kUnigram = 1, kBpe = 2 };

  struct Piece {
    std::string text;
    float score = 0;
    PieceType type = PieceType::kNormal;
  };

  std::vector<Piece> pieces;  // by id
  Algorithm algorithm = Algorithm::kUnigram;
  bool byte_fallback = false;
  std::string unknown_surface = " \xE2\x81\x87 ";  // what the unknown piece decodes to
  std::string bos_piece = "<s>";
  std::string eos_piece = "</s>";

  std::string character_map;  // normalization rules, see sentencepiece_normalizer.h; may be empty
  bool add_dummy_prefix = true;
  bool remove_extra_whitespaces = true;
  bool escape_whitespaces = true;
};

// The metaspace, which stands for a space inside pieces.
inline constexpr std::string_view kMetaspace = "\xE2\x96\x81";

// Requires of the result what the encoder relies on: pieces are distinct non-empty UTF-8 with
// finite scores, there is exactly one unknown piece, and with byte fallback all 256 byte pieces.
// DATA_LOSS when the file is cut or garbled, INVALID_ARGUMENT when it contradicts itself,
// UNIMPLEMENTED for word and character models, unused pieces, whitespace as suffix and
// denormalization. Messages start with `file_name`.
StatusOr<SentencePieceModel> ParseSentencePieceModel(
    std::string_view contents, const std::string& file_name
);

}  // namespace switchyard
