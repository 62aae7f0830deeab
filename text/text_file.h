#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "base/status.h"

namespace switchyard {

// Far above any published tokenizer (tens of MB), far below what would strain a server.
inline constexpr int64_t kMaxTokenizerFileBytes = int64_t{256} << 20;

// The whole file. NOT_FOUND when it cannot be opened, INVALID_ARGUMENT when it is larger than the
// limit above.
StatusOr<std::string> ReadTokenizerFile(const std::filesystem::path& path);

}  // namespace switchyard
