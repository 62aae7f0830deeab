#include "server/access/api_key.h"

#include <openssl/rand.h>
#include <openssl/sha.h>

#include <algorithm>

namespace switchyard {
namespace {

constexpr std::string_view kPrefix = "sy_";
constexpr std::string_view kLetters =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
constexpr size_t kKeyLetters = 43;
constexpr std::string_view kHexDigits = "0123456789abcdef";

}  // namespace

StatusOr<std::string> MakeApiKey() {
  // Six bits of a byte each; 43 letters carry 258.
  std::array<uint8_t, kKeyLetters> random = {};
  if (RAND_bytes(random.data(), static_cast<int>(random.size())) != 1) {
    return Internal("the system gave no random bytes to make a key of");
  }
  std::string key(kPrefix);
  for (const uint8_t byte : random) {
    key += kLetters[byte % kLetters.size()];
  }
  return key;
}

bool HasKeyForm(std::string_view text) {
  return text.size() == kPrefix.size() + kKeyLetters && text.starts_with(kPrefix) &&
         text.find_first_not_of(kLetters, kPrefix.size()) == std::string_view::npos;
}

KeyHash HashKey(std::string_view key) {
  KeyHash hash = {};
  SHA256(reinterpret_cast<const unsigned char*>(key.data()), key.size(), hash.data());
  return hash;
}

std::string HexOf(const KeyHash& hash) {
  std::string hex;
  for (const uint8_t byte : hash) {
    hex += kHexDigits[byte >> 4];
    hex += kHexDigits[byte & 15];
  }
  return hex;
}

std::optional<KeyHash> ParseKeyHash(std::string_view hex) {
  KeyHash hash = {};
  if (hex.size() != 2 * hash.size() ||
      hex.find_first_not_of(kHexDigits) != std::string_view::npos) {
    return std::nullopt;
  }
  for (size_t i = 0; i < hash.size(); ++i) {
    const size_t high = kHexDigits.find(hex[2 * i]);
    hash[i] = static_cast<uint8_t>(16 * high + kHexDigits.find(hex[2 * i + 1]));
  }
  return hash;
}

}  // namespace switchyard
