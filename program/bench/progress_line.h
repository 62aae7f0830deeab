#pragma once

#include <string>

#include "program/bench/load_driver.h"

namespace switchyard {

// One line of at most `columns` characters without a newline: a bar if there is room for one, then
// numbers.
std::string ProgressText(const std::string& what, const LoadProgress& progress, int columns);

// A line on standard error that is drawn over itself while something runs, and is gone afterwards.
// Draws only if standard error is a terminal. Thread-compatible.
class ProgressLine {
 public:
  ProgressLine();
  ~ProgressLine() { Clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  bool IsShown() const { return is_terminal_; }
  void Draw(const std::string& what, const LoadProgress& progress);
  void Clear();

 private:
  bool is_terminal_;
  bool is_drawn_ = false;
};

}  // namespace switchyard
