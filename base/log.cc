#include "base/log.h"

#include <spdlog/sinks/stdout_sinks.h>

#include <atomic>
#include <map>
#include <memory>

namespace switchyard {
namespace {

// The logger is the process's, and so is how its lines look.
std::atomic<LogFormat>& CurrentFormat() {
  static std::atomic<LogFormat> format = LogFormat::kText;
  return format;
}

}  // namespace

bool SetLogLevel(const std::string& level) {
  static const std::map<std::string, spdlog::level::level_enum> kLevels = {
      {"debug", spdlog::level::debug},
      {"info", spdlog::level::info},
      {"warning", spdlog::level::warn},
      {"error", spdlog::level::err},
      {"off", spdlog::level::off},
  };
  const auto found = kLevels.find(level);
  if (found == kLevels.end()) {
    return false;
  }
  spdlog::set_level(found->second);
  return true;
}

void SetLogFormat(LogFormat format) {
  CurrentFormat() = format;
  const char* const pattern = format == LogFormat::kText
                                  ? "%Y-%m-%dT%H:%M:%S.%eZ level=%l %v"
                                  : R"({"time":"%Y-%m-%dT%H:%M:%S.%eZ","level":"%l",%v})";
  spdlog::default_logger_raw()->set_pattern(pattern, spdlog::pattern_time_type::utc);
}

void InitializeLog() {
  const auto sink = std::make_shared<spdlog::sinks::stderr_sink_mt>();
  const auto logger = std::make_shared<spdlog::logger>("switchyard", sink);
  logger->flush_on(spdlog::level::info);
  spdlog::set_default_logger(logger);
  SetLogFormat(LogFormat::kText);
}

void LogEvent(
    spdlog::level::level_enum level, std::string_view fields, const std::vector<LogValue>& values
) {
  const std::string line = RenderLogFields(CurrentFormat(), fields, values);
  spdlog::default_logger_raw()->log(level, spdlog::string_view_t(line.data(), line.size()));
}

}  // namespace switchyard
