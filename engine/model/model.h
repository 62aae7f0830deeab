#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "engine/model/decoder.h"
#include "engine/model/forward_observer.h"
#include "engine/model/kv_cache.h"
#include "engine/model/model_config.h"
#include "engine/model/router.h"
#include "engine/model/scratch.h"
#include "engine/model/step_batch.h"
#include "engine/model/weight_files.h"
#include "engine/model/weights.h"
#include "kernels/ops.h"

namespace switchyard {

// A decoder: embed -> blocks -> norm -> logits. Immutable after loading except for its routers'
// counters, which live in the backend's memory. Used only by the engine thread.
class Model {
 public:
  // Reads config.json and the safetensors of a model folder. The files stay mapped for the life of
  // the model. `ops` must outlive it. Errors name the file and the tensor or field.
  static StatusOr<std::unique_ptr<Model>> Load(
      const std::filesystem::path& folder, const WeightOptions& options, Ops& ops
  );

  const ModelConfig& config() const { return config_; }
  const WeightsSummary& summary() const { return summary_; }
  KvLayout kv_layout() const;
  Ops& ops() const { return ops_; }

  // Bytes of scratch that a step of at most this many tokens and logit rows needs.
  int64_t ScratchBytes(int64_t max_step_tokens, int64_t max_logit_rows) const;

  // Runs one step: stores the keys and values of batch's tokens in `cache` and writes logits
  // [logit_rows, vocabulary]. `observer` may be null. The caller asks ops().Finish() afterwards.
  void Forward(
      const StepBatch& batch,
      KvCache& cache,
      Scratch& scratch,
      TensorView logits,
      ForwardObserver* observer
  ) const;

  // Every router in executed order, for counters.
  const std::vector<const Router*>& routers() const { return routers_; }

 private:
  void Embed(const StepBatch& batch, Scratch& scratch, TensorView x) const;
  void ComputeLogits(TensorView x, TensorView logit_rows, Scratch& scratch, TensorView logits)
      const;

  explicit Model(Ops& ops) : ops_(ops) {}

  ModelConfig config_;
  Ops& ops_;
  std::unique_ptr<WeightFiles> files_;  // keeps the mapping alive
  WeightsSummary summary_;
  Decoder decoder_;
  std::vector<const Router*> routers_;
};

}  // namespace switchyard
