#include "text/utf8.h"

#include <cstdint>

namespace switchyard {
namespace {

// What a lead byte promises. The second byte alone decides about overlong forms, surrogates and the
// upper end of Unicode, so its range depends on the lead; all later bytes are 80..BF.
struct Lead {
  size_t bytes = 0;  // 0: not a lead byte
  uint8_t second_low = 0x80;
  uint8_t second_high = 0xBF;
  uint8_t payload_mask = 0;
};

Lead LeadOf(uint8_t byte) {
  if (byte < 0x80) {
    return {.bytes = 1, .payload_mask = 0x7F};
  }
  if (byte < 0xC2) {
    return {};
  }
  if (byte < 0xE0) {
    return {.bytes = 2, .payload_mask = 0x1F};
  }
  if (byte < 0xF0) {
    const uint8_t low = byte == 0xE0 ? 0xA0 : 0x80;
    const uint8_t high = byte == 0xED ? 0x9F : 0xBF;
    return {.bytes = 3, .second_low = low, .second_high = high, .payload_mask = 0x0F};
  }
  if (byte < 0xF5) {
    const uint8_t low = byte == 0xF0 ? 0x90 : 0x80;
    const uint8_t high = byte == 0xF4 ? 0x8F : 0xBF;
    return {.bytes = 4, .second_low = low, .second_high = high, .payload_mask = 0x07};
  }
  return {};
}

}  // namespace

Utf8Step NextUtf8(std::string_view bytes) {
  const auto first = static_cast<uint8_t>(bytes[0]);
  const Lead lead = LeadOf(first);
  if (lead.bytes == 0) {
    return {.kind = Utf8Kind::kInvalid, .bytes = 1};
  }
  char32_t code_point = first & lead.payload_mask;
  for (size_t i = 1; i < lead.bytes; ++i) {
    if (i == bytes.size()) {
      return {.kind = Utf8Kind::kIncomplete, .bytes = i};
    }
    const auto byte = static_cast<uint8_t>(bytes[i]);
    const uint8_t low = i == 1 ? lead.second_low : 0x80;
    const uint8_t high = i == 1 ? lead.second_high : 0xBF;
    if (byte < low || byte > high) {
      return {.kind = Utf8Kind::kInvalid, .bytes = i};
    }
    code_point = code_point << 6 | (byte & 0x3F);
  }
  return {.kind = Utf8Kind::kCharacter, .bytes = lead.bytes, .code_point = code_point};
}

std::optional<size_t> FindInvalidUtf8(std::string_view text) {
  size_t offset = 0;
  while (offset < text.size()) {
    const Utf8Step step = NextUtf8(text.substr(offset));
    if (step.kind != Utf8Kind::kCharacter) {
      return offset;
    }
    offset += step.bytes;
  }
  return std::nullopt;
}

std::string ReplaceInvalidUtf8(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size());
  while (!bytes.empty()) {
    const Utf8Step step = NextUtf8(bytes);
    text += step.kind == Utf8Kind::kCharacter ? bytes.substr(0, step.bytes) : kReplacementCharacter;
    bytes.remove_prefix(step.bytes);
  }
  return text;
}

void AppendUtf8(char32_t code_point, std::string& text) {
  const auto append = [&text](char32_t byte) { text.push_back(static_cast<char>(byte)); };
  const auto append_tail = [&](int shift) { append(0x80 | (code_point >> shift & 0x3F)); };
  if (code_point < 0x80) {
    append(code_point);
  } else if (code_point < 0x800) {
    append(0xC0 | code_point >> 6);
    append_tail(0);
  } else if (code_point < 0x10000) {
    append(0xE0 | code_point >> 12);
    append_tail(6);
    append_tail(0);
  } else {
    append(0xF0 | code_point >> 18);
    append_tail(12);
    append_tail(6);
    append_tail(0);
  }
}

bool IsUnicodeSpace(char32_t code_point) {
  switch (code_point) {
    case 0x20:
    case 0x85:
    case 0xA0:
    case 0x1680:
    case 0x2028:
    case 0x2029:
    case 0x202F:
    case 0x205F:
    case 0x3000:
      return true;
    default:
      return (code_point >= 0x09 && code_point <= 0x0D) ||
             (code_point >= 0x2000 && code_point <= 0x200A);
  }
}

}  // namespace switchyard
