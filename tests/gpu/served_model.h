#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "engine/engine_core.h"
#include "kernels/ops.h"
#include "tests/gpu/model_shape.h"

namespace switchyard {

// What decode steps of `batch` requests took; the median, and means over the steps.
struct DecodeRow {
  int64_t batch = 0;
  int64_t context = 0;  // tokens of each prompt
  int64_t steps = 0;
  double step_seconds = 0;
  // Of the weights that the kernels read: of experts those to which the routing of that step led,
  // each once, as the device counted them.
  double weight_bytes = 0;
  // Keys and values behind each request's token, and those that the step stored.
  double kv_bytes = 0;
};

// A prefill in one step.
struct PrefillRow {
  int64_t tokens = 0;
  double seconds = 0;  // median
};

// A random model in an engine as a server has it, driven step by step.
class ServedModel {
 public:
  struct Options {
    std::string device = "cuda";
    int64_t max_batch = 1;
    int64_t context = 128;
    int64_t steps = 64;
    int64_t prefill_tokens = 4096;
  };
  // `shape` must outlive this.
  static StatusOr<std::unique_ptr<ServedModel>> Create(
      const ModelShape& shape, const Options& options
  );

  StatusOr<DecodeRow> MeasureDecode(int64_t batch);
  StatusOr<PrefillRow> MeasurePrefill(int repeats);

 private:
  class CountingSink;

  ServedModel(const ModelShape& shape, const Options& options) : shape_(shape), options_(options) {}

  Status Load();
  // With a prompt that no other request has, and tokens drawn at temperature 1: the likeliest ones
  // of a random model soon repeat, and would all go to the same few experts.
  StatusOr<std::shared_ptr<CountingSink>> Add(int64_t prompt_tokens, int64_t max_tokens);
  static int64_t CountTokens(const std::vector<std::shared_ptr<CountingSink>>& sinks);

  const ModelShape& shape_;
  Options options_;
  std::unique_ptr<Ops> ops_;
  std::unique_ptr<EngineCore> core_;  // before ops_ is gone
  uint64_t requests_ = 0;
};

}  // namespace switchyard
