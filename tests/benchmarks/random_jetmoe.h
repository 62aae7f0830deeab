#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/status.h"

namespace switchyard {

// A JetMoE of a given shape with random BF16 weights: nothing it says makes sense, everything it
// costs is real.
struct RandomJetMoeShape {
  int64_t vocabulary_size = 32000;
  int64_t model_dim = 1024;
  int64_t layers = 4;
  int64_t kv_heads = 8;
  int64_t head_dim = 128;
  int64_t experts = 8;
  int64_t top_k = 2;
  int64_t feed_forward_dim = 2816;
  int64_t context_tokens = 4096;
};

struct NamedShape {
  std::string name;
  std::vector<int64_t> shape;
};

// The fields of its config.json, and its tensors.
nlohmann::json JetMoeConfig(const RandomJetMoeShape& shape);
std::vector<NamedShape> JetMoeTensors(const RandomJetMoeShape& shape);

// Writes config.json and model.safetensors into an existing folder.
Status WriteRandomJetMoe(const std::filesystem::path& folder, const RandomJetMoeShape& shape);

}  // namespace switchyard
