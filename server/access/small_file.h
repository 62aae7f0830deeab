#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "base/status.h"

namespace switchyard {

// All of a file, such as a certificate or a list of keys. NOT_FOUND, naming it and the reason, when
// it cannot be read; INVALID_ARGUMENT when it is no regular file or has more than `max_bytes`.
StatusOr<std::string> ReadSmallFile(const std::filesystem::path& path, int64_t max_bytes);

}  // namespace switchyard
