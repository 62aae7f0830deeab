#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/status.h"

namespace switchyard {

// Deeper than any real file. What walks a value (copying, comparing, printing it) recurses, so a
// file of brackets alone would otherwise exhaust the stack.
inline constexpr int kMaxJsonDepth = 64;

// The JSON value that a file holds, whoever wrote it. INVALID_ARGUMENT, beginning with `file_name`,
// when the text is no JSON (the message tells the byte) or nests deeper than kMaxJsonDepth.
StatusOr<nlohmann::json> ParseJson(std::string_view text, const std::string& file_name);

// The same of a whole file. NOT_FOUND when it cannot be read; DATA_LOSS when it has more than
// `max_bytes` or is no such JSON.
StatusOr<nlohmann::json> ReadJsonFile(const std::filesystem::path& path, int64_t max_bytes);

}  // namespace switchyard
