#include "program/help_formatter.h"

namespace switchyard {

std::string HelpFormatter::make_option_opts(const CLI::Option* option) const {
  if (option->get_type_size() == 0) {
    return "";
  }
  if (!option->get_option_text().empty()) {
    return " " + option->get_option_text();
  }
  // "TEXT:{auto,cpu}" names the type and then each check on the value; choices say more than the
  // type.
  const std::string type = option->get_type_name();
  const size_t choices = type.find('{');
  std::string text =
      " " + (choices == std::string::npos ? type.substr(0, type.find(':'))
                                          : type.substr(choices, type.find('}') + 1 - choices));
  if (option->get_required()) {
    text += " (required)";
  }
  if (!option->get_default_str().empty()) {
    text += " [" + option->get_default_str() + "]";
  }
  return text;
}

std::string HelpFormatter::make_expanded(const CLI::App* command) const {
  return make_groups(command, CLI::AppFormatMode::Sub);
}

}  // namespace switchyard
