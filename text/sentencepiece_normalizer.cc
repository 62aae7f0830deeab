#include "text/sentencepiece_normalizer.h"

#include <utility>

#include "text/utf8.h"

namespace switchyard {
namespace {

constexpr size_t kUnitBytes = sizeof(uint32_t);

uint32_t UnitAt(std::string_view bytes, size_t index) {
  uint32_t unit = 0;
  for (size_t i = kUnitBytes; i > 0; --i) {
    unit = unit << 8 | static_cast<uint8_t>(bytes[index * kUnitBytes + i - 1]);
  }
  return unit;
}

// The bit fields of one unit of the trie. A node's children lie at its index xor its offset xor
// their byte; the child for byte 0 is the leaf that holds the value. Bit 31 is set in leaves only,
// so a leaf never passes for a child.
bool HasLeaf(uint32_t unit) {
  return (unit >> 8 & 1U) != 0;
}
uint32_t Value(uint32_t unit) {
  return unit & 0x7FFFFFFFU;
}
uint32_t Label(uint32_t unit) {
  return unit & 0x800000FFU;
}
uint32_t Offset(uint32_t unit) {
  return unit >> 10 << ((unit & 0x200U) >> 6);
}

}  // namespace

StatusOr<SentencePieceNormalizer> SentencePieceNormalizer::Create(
    const SentencePieceModel& model, const std::string& file_name
) {
  SentencePieceNormalizer normalizer;
  normalizer.add_dummy_prefix_ = model.add_dummy_prefix;
  normalizer.remove_extra_whitespaces_ = model.remove_extra_whitespaces;
  normalizer.space_ = model.escape_whitespaces ? kMetaspace : std::string_view(" ");
  const std::string_view map = model.character_map;
  if (map.empty()) {
    return normalizer;
  }
  const size_t trie_bytes = map.size() > kUnitBytes ? UnitAt(map, 0) : 0;
  if (trie_bytes == 0 || trie_bytes % kUnitBytes != 0 || trie_bytes > map.size() - kUnitBytes) {
    return InvalidArgument(
        file_name,
        ": normalizer_spec.precompiled_charsmap has ",
        map.size(),
        " bytes, of which its trie claims ",
        trie_bytes,
        "; the file is damaged"
    );
  }
  normalizer.trie_.reserve(trie_bytes / kUnitBytes);
  for (size_t i = 0; i < trie_bytes / kUnitBytes; ++i) {
    normalizer.trie_.push_back(UnitAt(map, i + 1));
  }
  normalizer.replacements_ = map.substr(kUnitBytes + trie_bytes);
  return normalizer;
}

// A garbled trie can point anywhere, so every index is checked; a path that leaves the array just
// ends.
SentencePieceNormalizer::Replacement SentencePieceNormalizer::LongestRule(std::string_view text
) const {
  Replacement longest;
  if (trie_.empty()) {
    return longest;
  }
  size_t node = Offset(trie_[0]);
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<uint8_t>(text[i]);
    node ^= byte;
    if (node >= trie_.size() || Label(trie_[node]) != byte) {
      break;
    }
    const uint32_t unit = trie_[node];
    node ^= Offset(unit);
    if (HasLeaf(unit) && node < trie_.size() && Value(trie_[node]) < replacements_.size()) {
      const std::string_view tail = std::string_view(replacements_).substr(Value(trie_[node]));
      longest = {.text = tail.substr(0, tail.find('\0')), .consumed_bytes = i + 1};
    }
  }
  return longest;
}

SentencePieceNormalizer::Replacement SentencePieceNormalizer::ReplaceFront(
    std::string_view text, const PrefixIndex& verbatim
) const {
  if (const auto match = verbatim.Longest(text)) {
    return {.text = text.substr(0, match->bytes), .consumed_bytes = match->bytes};
  }
  const Replacement rule = LongestRule(text);
  if (rule.consumed_bytes > 0) {
    return rule;
  }
  // No rule: the character stays as it is.
  // A damaged rule may have consumed part of a character, so this need not be the start of one.
  const Utf8Step step = NextUtf8(text);
  const bool is_character = step.kind == Utf8Kind::kCharacter;
  return {
      .text = is_character ? text.substr(0, step.bytes) : kReplacementCharacter,
      .consumed_bytes = step.bytes};
}

std::string SentencePieceNormalizer::Normalize(
    std::string_view text, Place place, const PrefixIndex& verbatim
) const {
  const bool is_start = place == Place::kStart;
  while (is_start && remove_extra_whitespaces_ && !text.empty()) {
    const Replacement front = ReplaceFront(text, verbatim);
    if (front.text != " ") {
      break;
    }
    text.remove_prefix(front.consumed_bytes);
  }
  // Text of nothing but white space vanishes, without even a dummy prefix.
  std::string normalized;
  if (text.empty()) {
    return normalized;
  }
  normalized.reserve(text.size() * 2);
  normalized += is_start && add_dummy_prefix_ ? space_ : "";
  // Runs of spaces shrink to one. Starting "behind a space" keeps the first one from doubling the
  // dummy prefix.
  bool follows_space = is_start && remove_extra_whitespaces_;
  while (!text.empty()) {
    Replacement front = ReplaceFront(text, verbatim);
    text.remove_prefix(front.consumed_bytes);
    while (follows_space && front.text.starts_with(' ')) {
      front.text.remove_prefix(1);
    }
    for (const char byte : front.text) {
      byte == ' ' ? normalized += space_ : normalized += byte;
    }
    // A character that a rule deletes leaves the question as it was.
    if (!front.text.empty()) {
      follows_space = remove_extra_whitespaces_ && front.text.ends_with(' ');
    }
  }
  while (remove_extra_whitespaces_ && normalized.ends_with(space_)) {
    normalized.resize(normalized.size() - space_.size());
  }
  return normalized;
}

}  // namespace switchyard
