#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace switchyard {

// API keys are "sy_" and 43 letters of base64url: 256 random bits. So a plain SHA-256 is all that a
// server needs to keep of one: there is nothing to guess, which is what salts and slow hashes are
// against. Anything of another form is no key, even when its hash is in the file; so nobody can use
// a password in the place of one.

using KeyHash = std::array<uint8_t, 32>;

// A new key; INTERNAL when the system has no randomness.
StatusOr<std::string> MakeApiKey();

bool HasKeyForm(std::string_view text);

// SHA-256.
KeyHash HashKey(std::string_view key);

// 64 lower-case hex digits, and back; absent for anything else.
std::string HexOf(const KeyHash& hash);
std::optional<KeyHash> ParseKeyHash(std::string_view hex);

}  // namespace switchyard
