#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace switchyard {

// Strict UTF-8 as Unicode defines it: no overlong forms, no surrogates, nothing above U+10FFFF.

enum class Utf8Kind {
  kCharacter,   // a whole, valid character
  kIncomplete,  // a valid beginning that the end of the bytes cuts off
  kInvalid,     // bytes that no continuation can turn into a character
};

struct Utf8Step {
  Utf8Kind kind = Utf8Kind::kInvalid;
  size_t bytes = 0;         // how many it takes up; at least 1
  char32_t code_point = 0;  // of a kCharacter
};

inline constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";  // U+FFFD

// What stands at the front of `bytes`. An invalid sequence is as long as the part of it that could
// have begun a character, and at least one byte, which is Unicode's recommended unit of
// replacement. Requires: bytes is not empty.
Utf8Step NextUtf8(std::string_view bytes);

// The offset of the first byte that is not part of a valid character.
std::optional<size_t> FindInvalidUtf8(std::string_view text);

// `bytes` with U+FFFD in place of each invalid or incomplete sequence.
std::string ReplaceInvalidUtf8(std::string_view bytes);

// Requires: code_point is a Unicode scalar value.
void AppendUtf8(char32_t code_point, std::string& text);

// Unicode's White_Space property.
bool IsUnicodeSpace(char32_t code_point);

}  // namespace switchyard
