#pragma once

#include <chrono>
#include <filesystem>

#include "server/loaded_model.h"
#include "server/server.h"

namespace switchyard {

struct ServeOptions {
  std::filesystem::path model_folder;
  ServerOptions server;
  LoadOptions load;
  std::chrono::seconds drain_timeout{15};  // for running requests after SIGTERM
};

// The `serve` command: listens, loads the model, serves until SIGTERM or SIGINT, lets running
// requests finish, and returns the exit code: 0 after a stop by signal, 1 when it cannot listen or
// load, with the reason in the log. A second signal cuts the draining short, a third ends the
// process where it stands. Call it before the program makes any thread.
int RunServer(const ServeOptions& options);

}  // namespace switchyard
