#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace switchyard {

// GPT-2's spelling of bytes as printable characters, in which byte-level vocabularies are written:
// a byte that is a printable, non-space Latin-1 character stands for itself; the other 68 are, in
// order, U+0100 and up.

// The character of one byte, as UTF-8.
std::string_view ByteCharacter(uint8_t byte);

// Every byte of `bytes` as its character.
std::string SpellBytes(std::string_view bytes);

// The reverse; nothing when `text` has a character that spells no byte.
std::optional<std::string> UnspellBytes(std::string_view text);

}  // namespace switchyard
