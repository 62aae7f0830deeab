#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace switchyard {

// Byte fallback tokens, spelled "<0x00>" to "<0xFF>" with capital digits.
std::string BytePiece(uint8_t byte);
std::optional<uint8_t> ParseBytePiece(std::string_view piece);

}  // namespace switchyard
