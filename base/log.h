#pragma once

#include <spdlog/spdlog.h>

#include <string>

// Log events, not sentences: one event a line, key=value, the same names as the metrics.
//   LogInfo("event=preempted request_id={} available_blocks={}", id, blocks);
// Goes to standard error, so that a command's output on standard output stays clean. Thread-safe.

namespace switchyard {

// `level` is one of debug, info, warning, error, off. Returns false for any other word.
bool SetLogLevel(const std::string& level);

// Call once at the start of a program: standard error, ISO 8601 time in UTC, level, event.
void InitializeLog();

template <typename... Arguments>
void LogDebug(spdlog::format_string_t<Arguments...> format, Arguments&&... arguments) {
  spdlog::debug(format, std::forward<Arguments>(arguments)...);
}
template <typename... Arguments>
void LogInfo(spdlog::format_string_t<Arguments...> format, Arguments&&... arguments) {
  spdlog::info(format, std::forward<Arguments>(arguments)...);
}
template <typename... Arguments>
void LogWarning(spdlog::format_string_t<Arguments...> format, Arguments&&... arguments) {
  spdlog::warn(format, std::forward<Arguments>(arguments)...);
}
template <typename... Arguments>
void LogError(spdlog::format_string_t<Arguments...> format, Arguments&&... arguments) {
  spdlog::error(format, std::forward<Arguments>(arguments)...);
}

}  // namespace switchyard
