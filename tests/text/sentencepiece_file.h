#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <vector>

namespace switchyard {

struct FilePiece {
  std::string text;
  float score = 0;
  int type = 1;  // as in the file format: 1 normal, 2 unknown, 3 control, 4 user defined, 6 byte
};

// The bytes of a small SentencePiece model without normalization rules. `trainer_spec` is a
// serialized message:
// "\x18\x02" says model_type 2, BPE. Requires: no piece and no message is longer than 100 bytes.
inline std::string SentencePieceFile(
    const std::vector<FilePiece>& pieces, const std::string& trainer_spec
) {
  const auto message = [](int number, const std::string& bytes) {
    return std::string(1, static_cast<char>(number << 3 | 2)) + static_cast<char>(bytes.size()) +
           bytes;
  };
  std::string file;
  for (const FilePiece& piece : pieces) {
    std::string bytes = message(1, piece.text) + "\x15";
    const auto score = std::bit_cast<uint32_t>(piece.score);
    for (int shift = 0; shift < 32; shift += 8) {
      bytes += static_cast<char>(score >> shift & 0xFF);
    }
    file += message(1, bytes + "\x18" + static_cast<char>(piece.type));
  }
  return file + message(2, trainer_spec);
}

}  // namespace switchyard
