#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>

#include "base/status.h"
#include "server/loaded_model.h"
#include "server/server.h"

namespace switchyard {

struct ServeOptions {
  std::filesystem::path model_folder;
  ServerOptions server;
  LoadOptions load;
  std::chrono::seconds drain_timeout{15};  // for running requests after SIGTERM
};

using ModelLoader = std::function<
    StatusOr<std::unique_ptr<LoadedModel>>(const std::filesystem::path&, const LoadOptions&)>;

// The `serve` command: listens, loads the model, serves until SIGTERM or SIGINT, lets running
// requests finish. OK after a stop by signal; else why it could not listen or load, which is in the
// log, too. A second signal cuts the draining short, a third ends the process where it stands. Call
// it before the program makes any thread.
Status RunServer(const ServeOptions& options, const ModelLoader& load = LoadModel);

}  // namespace switchyard
