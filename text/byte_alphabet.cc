#include "text/byte_alphabet.h"

#include <array>
#include <unordered_map>

#include "text/utf8.h"

namespace switchyard {
namespace {

// Printable ASCII and Latin-1 without the spaces (0x20, 0xA0) and the invisible soft hyphen (0xAD).
bool StandsForItself(int byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

struct Alphabet {
  std::array<std::string, 256> characters;      // by byte
  std::unordered_map<char32_t, uint8_t> bytes;  // by character
};

const Alphabet& TheAlphabet() {
  static const Alphabet kAlphabet = [] {
    Alphabet made;
    char32_t next_substitute = 0x100;
    for (int byte = 0; byte < 256; ++byte) {
      const char32_t character =
          StandsForItself(byte) ? static_cast<char32_t>(byte) : next_substitute++;
      AppendUtf8(character, made.characters[static_cast<size_t>(byte)]);
      made.bytes.emplace(character, static_cast<uint8_t>(byte));
    }
    return made;
  }();
  return kAlphabet;
}

}  // namespace

std::string_view ByteCharacter(uint8_t byte) {
  return TheAlphabet().characters[byte];
}

std::string SpellBytes(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size() * 2);
  for (const char byte : bytes) {
    text += ByteCharacter(static_cast<uint8_t>(byte));
  }
  return text;
}

std::optional<std::string> UnspellBytes(std::string_view text) {
  std::string bytes;
  while (!text.empty()) {
    const Utf8Step step = NextUtf8(text);
    const auto found = TheAlphabet().bytes.find(step.code_point);
    if (step.kind != Utf8Kind::kCharacter || found == TheAlphabet().bytes.end()) {
      return std::nullopt;
    }
    bytes.push_back(static_cast<char>(found->second));
    text.remove_prefix(step.bytes);
  }
  return bytes;
}

}  // namespace switchyard
