#include "base/log.h"

#include <spdlog/sinks/stdout_sinks.h>

#include <map>
#include <memory>

namespace switchyard {

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

void InitializeLog() {
  const auto sink = std::make_shared<spdlog::sinks::stderr_sink_mt>();
  const auto logger = std::make_shared<spdlog::logger>("switchyard", sink);
  logger->set_pattern("%Y-%m-%dT%H:%M:%S.%eZ level=%l %v", spdlog::pattern_time_type::utc);
  logger->flush_on(spdlog::level::info);
  spdlog::set_default_logger(logger);
}

}  // namespace switchyard
