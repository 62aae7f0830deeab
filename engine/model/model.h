#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "engine/model/config_reader.h"
#include "engine/model/decoder.h"
#include "engine/model/forward_observer.h"
#include "engine/model/kv_cache.h"
#include "engine/model/model_config.h"
#include "engine/model/router.h"
#include "engine/model/scratch.h"
#include "engine/model/step_batch.h"
#include "engine/model/tensor_source.h"
#include "engine/model/weights.h"
#include "kernels/ops.h"

namespace switchyard {

struct Family;

// A decoder: embed -> blocks -> norm -> logits. Immutable after loading except for its routers'
// counters, which live in the backend's memory. Used only by the engine thread.
class Model {
 public:
  // Reads config.json and the safetensors of a model folder. The files stay mapped for the life of
  // the model. `ops` must outlive it. Errors name the file and the tensor or field.
  static StatusOr<std::unique_ptr<Model>> Load(
      const std::filesystem::path& folder, const WeightOptions& options, Ops& ops
  );
  // The same of a config and tensors from anywhere.
  static StatusOr<std::unique_ptr<Model>> Load(
      ConfigReader config,
      std::unique_ptr<TensorSource> tensors,
      const WeightOptions& options,
      Ops& ops
  );

  const ModelConfig& config() const { return config_; }
  const WeightsSummary& summary() const { return summary_; }
  KvLayout kv_layout() const;
  Ops& ops() const { return ops_; }

  // Bytes of scratch that a step of at most this many tokens and logit rows needs, its `hidden`
  // included.
  int64_t ScratchBytes(int64_t max_step_tokens, int64_t max_logit_rows) const;

  // Runs one step: stores the keys and values of batch's tokens in `cache` and writes the residual
  // stream behind the last block to `hidden` [tokens, model_dim]. `observer` may be null. The
  // caller asks ops().Finish() afterwards.
  void Forward(
      const StepBatch& batch,
      KvCache& cache,
      Scratch& scratch,
      TensorView hidden,
      ForwardObserver* observer
  ) const;
  // Logits [rows, vocabulary] of the rows (int32 [rows]) of `hidden`. At most as many rows as
  // ScratchBytes was asked for.
  void ComputeLogits(TensorView hidden, TensorView rows, Scratch& scratch, TensorView logits) const;

  // Every router in executed order, for counters.
  const std::vector<const Router*>& routers() const { return routers_; }

 private:
  void Embed(const StepBatch& batch, Scratch& scratch, TensorView x) const;

  explicit Model(Ops& ops) : ops_(ops) {}
  // Of the config, what can be said before the tensors are known.
  Status ReadConfig(ConfigReader& reader, const Family& family, const WeightOptions& options);
  Status Build(const Family& family, const WeightOptions& options);

  ModelConfig config_;
  Ops& ops_;
  std::unique_ptr<TensorSource> tensors_;  // keeps files mapped
  WeightsSummary summary_;
  Decoder decoder_;
  std::vector<const Router*> routers_;
};

}  // namespace switchyard
