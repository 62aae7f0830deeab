#pragma once

#include <spdlog/spdlog.h>

#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "base/log.h"

namespace switchyard {

// Takes the process's log away from standard error while it lives: level info, text unless told.
class CapturedLog {
 public:
  CapturedLog();
  ~CapturedLog();
  CapturedLog(const CapturedLog&) = delete;
  CapturedLog& operator=(const CapturedLog&) = delete;

  void Use(LogFormat format);
  // Whole lines so far, without their ends.
  std::vector<std::string> Lines() const;
  // The first line with `text`; waits for it, as long as the test may run.
  std::string WaitFor(const std::string& text) const;

 private:
  class Sink;

  std::shared_ptr<spdlog::logger> before_;
  std::shared_ptr<Sink> sink_;
};

}  // namespace switchyard
