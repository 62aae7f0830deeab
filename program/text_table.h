#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace switchyard {

// Rows of cells as aligned columns of text: the first column to the left, the others to the right.
class TextTable {
 public:
  explicit TextTable(std::vector<std::string> header) : rows_{std::move(header)} {}

  // Requires: as many cells as the header has.
  void AddRow(std::vector<std::string> cells);

  // Every line ends with a newline; two spaces between columns.
  std::string ToString() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

// "4194304" -> "4.19 M"; powers of 1000.
std::string ShortCount(int64_t count);

// "8388608" -> "8.00 MiB"; powers of 1024.
std::string ShortBytes(int64_t bytes);

}  // namespace switchyard
