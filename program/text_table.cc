#include "program/text_table.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iomanip>
#include <sstream>
#include <utility>

#include "base/check.h"

namespace switchyard {
namespace {

// Characters, not bytes: cells may hold any UTF-8.
size_t WidthOf(const std::string& text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char byte) {
    return (static_cast<unsigned char>(byte) & 0xC0U) != 0x80U;
  }));
}

// With three significant digits and the largest unit that keeps the number at one or more.
std::string Scaled(int64_t value, double step, const std::array<const char*, 5>& units) {
  if (static_cast<double>(value) < step) {
    return std::to_string(value) + units[0];
  }
  auto scaled = static_cast<double>(value);
  size_t unit = 0;
  while (scaled >= step && unit + 1 < units.size()) {
    scaled /= step;
    ++unit;
  }
  const int decimals = scaled < 10 ? 2 : scaled < 100 ? 1 : 0;
  std::ostringstream text;
  text << std::fixed << std::setprecision(decimals) << scaled << units[unit];
  return std::move(text).str();
}

}  // namespace

void TextTable::AddRow(std::vector<std::string> cells) {
  CHECK(cells.size() == rows_[0].size())
      << cells.size() << " cells, " << rows_[0].size() << " columns";
  rows_.push_back(std::move(cells));
}

std::string TextTable::ToString() const {
  std::vector<size_t> widths(rows_[0].size(), 0);
  for (const auto& row : rows_) {
    for (size_t column = 0; column < row.size(); ++column) {
      widths[column] = std::max(widths[column], WidthOf(row[column]));
    }
  }
  std::string text;
  for (const auto& row : rows_) {
    std::string line;
    for (size_t column = 0; column < row.size(); ++column) {
      const std::string padding(widths[column] - WidthOf(row[column]), ' ');
      line += column == 0 ? row[column] + padding : "  " + padding + row[column];
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string ShortCount(int64_t count) {
  return Scaled(count, 1000, {"", " k", " M", " G", " T"});
}

std::string ShortBytes(int64_t bytes) {
  return Scaled(bytes, 1024, {" B", " KiB", " MiB", " GiB", " TiB"});
}

}  // namespace switchyard
