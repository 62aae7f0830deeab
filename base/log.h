#pragma once

#include <spdlog/spdlog.h>

#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/log_line.h"

// Log events, not sentences: one event a line, key=value, the same names as the metrics.
//   LogInfo("event=preempted request_id={} available_blocks={}", id, blocks);
// The first field is `event`; each value has a name of its own (base/log_line.h says how values are
// kept from breaking a line). Goes to standard error, so that a command's output on standard output
// stays clean. Thread-safe.

namespace switchyard {

// `level` is one of debug, info, warning, error, off. Returns false for any other word.
bool SetLogLevel(const std::string& level);

// Lines of key=value words, which is how it begins, or of one JSON object each.
void SetLogFormat(LogFormat format);

// Call once at the start of a program: standard error, ISO 8601 time in UTC, level, event.
void InitializeLog();

// What the functions below have in common.
void LogEvent(
    spdlog::level::level_enum level, std::string_view fields, const std::vector<LogValue>& values
);

template <typename T>
LogValue ToLogValue(const T& value) {
  if constexpr (std::is_same_v<T, bool>) {
    return value;
  } else if constexpr (std::is_integral_v<T> && std::is_unsigned_v<T>) {
    return static_cast<uint64_t>(value);
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<int64_t>(value);
  } else if constexpr (std::is_floating_point_v<T>) {
    return static_cast<double>(value);
  } else {
    return std::string(std::string_view(value));
  }
}

template <typename... Arguments>
void LogAt(
    spdlog::level::level_enum level,
    spdlog::format_string_t<Arguments...> format,
    const Arguments&... arguments
) {
  if (spdlog::should_log(level)) {
    const fmt::string_view fields = format;
    LogEvent(level, std::string_view(fields.data(), fields.size()), {ToLogValue(arguments)...});
  }
}

template <typename... Arguments>
void LogDebug(spdlog::format_string_t<Arguments...> format, Arguments&&... arguments) {
  LogAt<Arguments...>(spdlog::level::debug, format, arguments...);
}
template <typename... Arguments>
void LogInfo(spdlog::format_string_t<Arguments...> format, Arguments&&... arguments) {
  LogAt<Arguments...>(spdlog::level::info, format, arguments...);
}
template <typename... Arguments>
void LogWarning(spdlog::format_string_t<Arguments...> format, Arguments&&... arguments) {
  LogAt<Arguments...>(spdlog::level::warn, format, arguments...);
}
template <typename... Arguments>
void LogError(spdlog::format_string_t<Arguments...> format, Arguments&&... arguments) {
  LogAt<Arguments...>(spdlog::level::err, format, arguments...);
}

}  // namespace switchyard
