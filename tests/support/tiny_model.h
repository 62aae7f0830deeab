#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "base/status.h"
#include "engine/model/model.h"
#include "kernels/ops.h"

namespace switchyard {

// A checkpoint small enough to run hundreds of steps in a test, with weights that depend on nothing
// but the seed. Every dimension is odd or unlike the others, so that mixed-up axes do not go
// unnoticed.
struct TinyModelOptions {
  uint64_t seed = 1;
  int64_t vocabulary_size = 61;
  int64_t model_dim = 24;
  int64_t layers = 2;
  int64_t heads = 2;  // kv heads
  int64_t head_dim = 6;
  int64_t experts = 4;
  int64_t top_k = 2;
  int64_t feed_forward_dim = 20;
  int64_t context_tokens = 96;
  int32_t eos_id = 2;  // JetMoE only: SwitchHead configs have none
  // The embedding of this token is not a number, so nothing that follows it in its sequence is
  // either.
  std::optional<int32_t> nan_token = {};
};

// Write config.json and model.safetensors (float32) into an existing folder.
Status WriteTinyJetMoe(const std::filesystem::path& folder, const TinyModelOptions& options);
Status WriteTinySwitchHead(const std::filesystem::path& folder, const TinyModelOptions& options);

enum class TinyFamily : uint8_t { kJetMoe, kSwitchHead };

// Writes a tiny model to a folder that is gone again when this returns, and loads it. Its files
// stay mapped.
StatusOr<std::unique_ptr<Model>> LoadTinyModel(
    TinyFamily family, const TinyModelOptions& options, Ops& ops
);

}  // namespace switchyard
