#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace switchyard {

// The help of CLI11 in fewer words: "--threads INT [0]" instead of "--threads INT:INT in [0 -
// 1024]=0", and the options of a group under its title like all others.
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_option_opts(const CLI::Option* option) const override;
  std::string make_expanded(const CLI::App* command) const override;
};

}  // namespace switchyard
