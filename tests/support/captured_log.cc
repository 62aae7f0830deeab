#include "tests/support/captured_log.h"

#include <spdlog/sinks/base_sink.h>

#include <mutex>
#include <thread>

namespace switchyard {

class CapturedLog::Sink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  std::string Text() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return text_;
  }

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    text_.append(line.data(), line.size());
  }
  void flush_() override {}

  std::string text_;
};

CapturedLog::CapturedLog()
    : before_(spdlog::default_logger()), sink_(std::make_shared<CapturedLog::Sink>()) {
  spdlog::set_default_logger(std::make_shared<spdlog::logger>("captured", sink_));
  spdlog::set_level(spdlog::level::info);
  SetLogFormat(LogFormat::kText);
}

CapturedLog::~CapturedLog() {
  spdlog::set_default_logger(before_);
  SetLogFormat(LogFormat::kText);
}

void CapturedLog::Use(LogFormat format) {
  SetLogFormat(format);
}

std::vector<std::string> CapturedLog::Lines() const {
  std::vector<std::string> lines;
  std::istringstream text(sink_->Text());
  for (std::string line; std::getline(text, line);) {
    lines.push_back(line);
  }
  return lines;
}

std::string CapturedLog::WaitFor(const std::string& text) const {
  while (true) {
    for (const std::string& line : Lines()) {
      if (line.find(text) != std::string::npos) {
        return line;
      }
    }
    std::this_thread::yield();
  }
}

}  // namespace switchyard
