#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "base/status.h"
#include "engine/model/model.h"
#include "kernels/backend.h"
#include "text/tokenizer.h"

namespace switchyard {

// Which model to run and on what: the flags that serve, generate, logits and score share.
struct ModelFlags {
  std::string folder;
  std::string device = "auto";
  std::string dtype = "stored";
  int threads = 0;
  bool cuda_graphs = true;
};

// --device, --dtype, --threads, --cuda-graphs. The values are checked while parsing.
void AddComputeFlags(CLI::App& command, ModelFlags& flags);

// --dtype as the model loader wants it: absent means as stored.
WeightOptions WeightOptionsOf(const ModelFlags& flags);

BackendOptions BackendOptionsOf(const ModelFlags& flags);

// A model and the backend it lives on, for commands that need no engine. Members are destroyed in
// the right order.
struct OfflineModel {
  std::unique_ptr<Ops> ops;
  std::unique_ptr<Model> model;
};

StatusOr<OfflineModel> OpenModel(const ModelFlags& flags);

// What the model's family knows of its tokenizer.
TokenizerDefaults TokenizerDefaultsOf(const ModelConfig& config);

}  // namespace switchyard
