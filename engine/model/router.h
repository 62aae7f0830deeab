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

// The matrices of a router's score; which ones there are depends on RouterScore.
struct RouterWeights {
  Weight score = {};  // [groups * experts, model_dim or score_dim]; kCosine: unit centroids times
                      // exp(temperature)
  Weight score_bias = {};  // [groups * experts]; may be absent
  Weight inner = {};       // kMlp, kCosine: [score_dim, model_dim]
  Weight inner_bias = {};  // kMlp: [score_dim]
  Weight unit =
      {};  // kCosine: a norm weight that makes unit vectors, 1 / sqrt(score_dim) everywhere
};

// Chooses experts for each token (and head) of a step and keeps the running counts of what it
// chose. Used only by the engine thread.
class Router {
 public:
  // RESOURCE_EXHAUSTED when the counters
  // do not fit.
  static StatusOr<std::unique_ptr<Router>> Create(
      Ops& ops,
      const RouterConfig& config,
      int64_t layer,
      RouterKind kind,
      const RouterWeights& weights
  );

  // Scores `input` [tokens, model_dim] and returns the choice, grouped by expert; it lives in
  // `scratch`'s current scope.
  GroupedRouting Route(
      TensorView input, const StepBatch& batch, Scratch& scratch, ForwardObserver* observer
  ) const;

  // Bytes of scratch that Route takes.
  int64_t ScratchBytes(int64_t tokens) const;

  const RouterConfig& config() const { return config_; }
  // Whether there is anything to choose: a router of one expert is only a gate.
  bool Chooses() const { return config_.experts > 1; }
  int64_t layer() const { return layer_; }
  RouterKind kind() const { return kind_; }
  // In the backend's memory; all zero at the start.
  const RouterCounters& counters() const { return counters_; }

 private:
  Router(
      Ops& ops,
      const RouterConfig& config,
      int64_t layer,
      RouterKind kind,
      const RouterWeights& weights
  );
  void Score(TensorView input, Scratch& scratch, TensorView scores) const;

  Ops& ops_;
  RouterConfig config_;
  int64_t layer_ = 0;
  RouterKind kind_;
  RouterWeights weights_;
  std::unique_ptr<Buffer> counter_memory_;
  RouterCounters counters_;
};

}  // namespace switchyard
