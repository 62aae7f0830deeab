#include <iostream>

#include "clients/cpp/client.h"
#include "program/command.h"
#include "program/connection_flags.h"

namespace switchyard {
namespace {

struct HealthFlags {
  ConnectionFlags connection;
  double wait_seconds = 0;
};

Status CheckServing(const HealthFlags& flags) {
  ASSIGN_OR_RETURN(const ClientOptions options, ReadConnectionFlags(flags.connection));
  const Client client(flags.connection.server, options);
  if (flags.wait_seconds > 0) {
    RETURN_IF_ERROR(client.WaitUntilServing(
        std::chrono::milliseconds(static_cast<int64_t>(flags.wait_seconds * 1000))
    ));
  } else {
    ASSIGN_OR_RETURN(const ServingStatus health, client.CheckHealth(""));
    if (health != ServingStatus::kServing) {
      return Unavailable(
          "server ", client.address(), " is not serving: its model is loading, or it is stopping"
      );
    }
  }
  std::cout << "SERVING" << std::endl;
  return OkStatus();
}

}  // namespace

void AddHealthCommand(CLI::App& app, RunCommand& run) {
  const auto flags = std::make_shared<HealthFlags>();
  CLI::App* const command =
      app.add_subcommand("health", "Ask a server through grpc.health.v1 whether it serves");
  command->add_option("--server", flags->connection.server, "A running server, HOST:PORT")
      ->type_name("ADDRESS")
      ->required();
  command
      ->add_option(
          "--wait", flags->wait_seconds, "Ask again until it serves, for at most so many seconds"
      )
      ->type_name("SECONDS")
      ->check(CLI::Range(0.0, 86400.0))
      ->capture_default_str();
  AddConnectionFlags(*command, flags->connection);
  command->callback([flags, &run] { run = [flags] { return CheckServing(*flags); }; });
}

}  // namespace switchyard
