#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "engine/engine.h"
#include "engine/model/weights.h"
#include "kernels/backend.h"
#include "server/experts/expert_baseline.h"
#include "server/validation/generation_defaults.h"
#include "server/validation/request_limits.h"
#include "switchyard/v1/inference.pb.h"
#include "text/tokenizer.h"

namespace switchyard {

// Everything that serving one model needs. Its parts do not change after loading, so it may be used
// from any thread.
struct LoadedModel {
  std::string name;
  int32_t vocabulary_size = 0;
  int32_t context_tokens = 0;
  GenerationDefaults defaults;
  RequestLimits limits;
  SchedulerLimits engine_limits;
  std::vector<int32_t> eos_token_ids;  // all that end a completion
  std::vector<int32_t>
      extra_eos_token_ids;  // those of them that the engine does not know by itself
  v1::GetModelInfoResponse info;
  std::shared_ptr<const ExpertBaseline> expert_baseline;  // null when there is none
  std::unique_ptr<Tokenizer> tokenizer;                   // null when the folder has none
  std::unique_ptr<Ops> ops;                               // outlives the engine
  std::unique_ptr<Engine> engine;
};

struct LoadOptions {
  std::string name;  // empty: the folder's
  BackendOptions backend;
  WeightOptions weights;
  EngineOptions engine;
  RequestLimits limits;
  int32_t default_max_tokens = 256;
  std::filesystem::path expert_baseline;  // empty: none
};

// Reads config, weights, tokenizer and generation defaults of a model folder and runs a first step
// through the engine. Errors name the file and what is wrong with it.
StatusOr<std::unique_ptr<LoadedModel>> LoadModel(
    const std::filesystem::path& folder, const LoadOptions& options
);

}  // namespace switchyard
