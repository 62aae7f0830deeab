#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace switchyard {

enum class LogFormat : uint8_t { kText, kJson };

using LogValue = std::variant<bool, int64_t, uint64_t, double, std::string>;

// The fields of one event as they stand in a line: `event=ready port=50051`, or
// `"event":"ready","port":50051` without the braces, which the time and the level share.
// `format` is what LogInfo takes: words NAME={}, NAME={:.3f}, NAME="{}" or NAME=constant. Each
// value is rendered by itself, so no value can end its line, begin a field or send a terminal
// control characters: what is more than letters, digits and _./:@%+,- is quoted and escaped as in
// JSON. Numbers are numbers in JSON; a double that is not finite is a string.
std::string RenderLogFields(
    LogFormat format, std::string_view fields, const std::vector<LogValue>& values
);

}  // namespace switchyard
