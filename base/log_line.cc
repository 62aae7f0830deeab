#include "base/log_line.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace switchyard {
namespace {

// One word of a format: NAME=VALUE, where the value may be a place for the next argument.
struct Word {
  std::string_view name;
  std::string_view value;
};

// Cuts the first word off. Requires: `rest` is not empty.
Word NextWord(std::string_view& rest) {
  const size_t equals = std::min(rest.find('='), rest.size());
  const std::string_view name = rest.substr(0, equals);
  rest.remove_prefix(std::min(equals + 1, rest.size()));
  const bool is_quoted = rest.starts_with('"');
  rest.remove_prefix(is_quoted ? 1 : 0);
  const size_t end = std::min(rest.find(is_quoted ? '"' : ' '), rest.size());
  const Word word = {.name = name, .value = rest.substr(0, end)};
  rest.remove_prefix(end);
  rest.remove_prefix(std::min(rest.find_first_not_of("\" "), rest.size()));
  return word;
}

bool IsPlain(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char letter) {
    const bool is_letter = (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z');
    const bool is_digit = letter >= '0' && letter <= '9';
    return is_letter || is_digit || std::string_view("_./:@%+,-").find(letter) != std::string::npos;
  });
}

// ASCII only: a terminal or a log viewer has its own ideas of other control and line characters.
std::string Quoted(const std::string& text) {
  return nlohmann::json(text).dump(
      -1, ' ', /*ensure_ascii=*/true, nlohmann::json::error_handler_t::replace
  );
}

std::string TextOf(LogFormat format, const std::string& text) {
  return format == LogFormat::kText && IsPlain(text) ? text : Quoted(text);
}

std::string NumberOf(std::string_view place, double number) {
  // The only precision that a format may ask for is {:.Nf}.
  const size_t point = place.find(":.");
  return point == std::string_view::npos ? fmt::format("{}", number)
                                         : fmt::format("{:.{}f}", number, place[point + 2] - '0');
}

std::string Render(LogFormat format, std::string_view place, const LogValue& value) {
  if (const auto* text = std::get_if<std::string>(&value)) {
    return TextOf(format, *text);
  }
  if (const auto* number = std::get_if<double>(&value)) {
    return std::isfinite(*number) ? NumberOf(place, *number)
                                  : TextOf(format, fmt::format("{}", *number));
  }
  return std::visit([](const auto& plain) { return fmt::format("{}", plain); }, value);
}

}  // namespace

std::string RenderLogFields(
    LogFormat format, std::string_view fields, const std::vector<LogValue>& values
) {
  std::string line;
  size_t used = 0;
  while (!fields.empty()) {
    const Word word = NextWord(fields);
    const bool is_place = word.value.starts_with('{') && used < values.size();
    const std::string value = is_place ? Render(format, word.value, values[used++])
                                       : TextOf(format, std::string(word.value));
    if (format == LogFormat::kText) {
      line.append(line.empty() ? "" : " ").append(word.name).append("=").append(value);
    } else {
      line.append(line.empty() ? "\"" : ",\"").append(word.name).append("\":").append(value);
    }
  }
  return line;
}

}  // namespace switchyard
