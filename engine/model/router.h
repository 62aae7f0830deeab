#pragma once

#include <cstdint>
#include <memory>

#include "base/status.h"
#include "engine/model/forward_observer.h"
#include "engine/model/model_config.h"
#include "engine/model/scratch.h"
#include "engine/model/step_batch.h"
#include "kernels/ops.h"

namespace switchyard {

// Chooses experts for each token (and head) of a step and keeps the running counts of what it
// chose. Used only by the engine thread.
class Router {
 public:
  // `score` is a dense weight [groups * experts, model_dim]. RESOURCE_EXHAUSTED when the counters
  // do not fit.
  static StatusOr<std::unique_ptr<Router>> Create(
      Ops& ops, const RouterConfig& config, int64_t layer, RouterKind kind, const Weight& score
  );

  // Scores `input` [tokens, model_dim] and returns the choice, grouped by expert; it lives in
  // `scratch`'s current scope.
  GroupedRouting Route(
      TensorView input, const StepBatch& batch, Scratch& scratch, ForwardObserver* observer
  ) const;

  // Bytes of scratch that Route takes.
  int64_t ScratchBytes(int64_t tokens) const;

  const RouterConfig& config() const { return config_; }
  int64_t layer() const { return layer_; }
  RouterKind kind() const { return kind_; }
  // In the backend's memory; all zero at the start.
  const RouterCounters& counters() const { return counters_; }

 private:
  Router(Ops& ops, const RouterConfig& config, int64_t layer, RouterKind kind, const Weight& score);

  Ops& ops_;
  RouterConfig config_;
  int64_t layer_ = 0;
  RouterKind kind_;
  Weight score_;
  std::unique_ptr<Buffer> counter_memory_;
  RouterCounters counters_;
};

}  // namespace switchyard
