#include <iostream>
#include <nlohmann/json.hpp>

#include "program/command.h"
#include "server/access/api_key.h"

namespace switchyard {
namespace {

struct ApiKeyFlags {
  std::string name;
};

Status MakeKey(const ApiKeyFlags& flags) {
  ASSIGN_OR_RETURN(const std::string key, MakeApiKey());
  // Apart, so that `switchyard api-key --name ann > ann.key` has the key alone in the file.
  std::cout << key << std::endl;
  const nlohmann::ordered_json entry = {{"name", flags.name}, {"sha256", HexOf(HashKey(key))}};
  std::cerr << "For the \"keys\" of the server's --api-keys file:\n" << entry.dump() << std::endl;
  return OkStatus();
}

}  // namespace

void AddApiKeyCommand(CLI::App& app, RunCommand& run) {
  const auto flags = std::make_shared<ApiKeyFlags>();
  CLI::App* const command = app.add_subcommand(
      "api-key",
      "Make an API key: it goes to standard output, what the server needs to standard error"
  );
  command->footer(
      "umask 077; switchyard api-key --name ann > ann.key\n"
      "docs/security.md has the fields that an entry may have: limits, priority, admin."
  );
  command->add_option("--name", flags->name, "Whose key it is; stands in the log")
      ->required()
      ->check([](const std::string& name) {
        const bool is_name = !name.empty() && name.size() <= 64 &&
                             name.find_first_not_of(
                                 "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-"
                             ) == std::string::npos;
        return is_name ? "" : "a name is 1 to 64 letters, digits and _.-";
      });
  command->callback([flags, &run] { run = [flags] { return MakeKey(*flags); }; });
}

}  // namespace switchyard
