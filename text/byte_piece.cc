#include "text/byte_piece.h"

namespace switchyard {
namespace {

constexpr std::string_view kDigits = "0123456789ABCDEF";

}  // namespace

std::string BytePiece(uint8_t byte) {
  return std::string("<0x") + kDigits[byte >> 4] + kDigits[byte & 0xF] + ">";
}

std::optional<uint8_t> ParseBytePiece(std::string_view piece) {
  if (piece.size() != 6 || !piece.starts_with("<0x") || piece.back() != '>') {
    return std::nullopt;
  }
  const size_t high = kDigits.find(piece[3]);
  const size_t low = kDigits.find(piece[4]);
  if (high == std::string_view::npos || low == std::string_view::npos) {
    return std::nullopt;
  }
  return static_cast<uint8_t>(high << 4 | low);
}

}  // namespace switchyard
