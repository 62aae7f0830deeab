#include "program/bench/progress_line.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <iostream>

#include "base/status.h"

namespace switchyard {
namespace {

constexpr int kLongestBar = 30;
constexpr int kShortestBar = 5;
constexpr int kColumnsWhenUnknown = 80;

int TerminalColumns() {
  winsize size = {};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) {
    return kColumnsWhenUnknown;
  }
  return size.ws_col;
}

}  // namespace

std::string ProgressText(const std::string& what, const LoadProgress& progress, int columns) {
  const auto percent = static_cast<int>(std::floor(100 * progress.done_share));
  std::string numbers = Concat(percent, "%  ", progress.ended, " ended");
  if (progress.running > 0) {
    numbers += Concat(", ", progress.running, " running");
  }
  if (progress.failed > 0) {
    numbers += Concat(", ", progress.failed, " failed");
  }
  if (progress.received_tokens > 0 && progress.seconds > 0) {
    const double rate = static_cast<double>(progress.received_tokens) / progress.seconds;
    numbers += Concat(", ", std::llround(rate), " tokens/s");
  }
  const int free_columns = columns - static_cast<int>(what.size() + numbers.size()) - 4;
  std::string line = what + " ";
  if (free_columns >= kShortestBar) {
    const int length = std::min(free_columns, kLongestBar);
    const auto filled = static_cast<size_t>(std::floor(progress.done_share * length));
    line += "[" + std::string(filled, '#') +
            std::string(static_cast<size_t>(length) - filled, '.') + "] ";
  }
  line += numbers;
  return line.substr(0, static_cast<size_t>(std::max(columns, 0)));
}

ProgressLine::ProgressLine() : is_terminal_(isatty(STDERR_FILENO) == 1) {}

void ProgressLine::Draw(const std::string& what, const LoadProgress& progress) {
  if (is_terminal_) {
    // The last column stays free: some terminals wrap as soon as it is written.
    std::cerr << "\r" << ProgressText(what, progress, TerminalColumns() - 1) << "\x1b[K"
              << std::flush;
    is_drawn_ = true;
  }
}

void ProgressLine::Clear() {
  if (is_drawn_) {
    std::cerr << "\r\x1b[K" << std::flush;
    is_drawn_ = false;
  }
}

}  // namespace switchyard
