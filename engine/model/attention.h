#pragma once

#include <cstdint>
#include <vector>

#include "engine/model/forward_observer.h"
#include "engine/model/kv_cache.h"
#include "engine/model/layer_input.h"
#include "engine/model/router.h"
#include "engine/model/scratch.h"
#include "engine/model/step_batch.h"

namespace switchyard {

// An attention layer whose projections may be experts. Used only by the engine thread.
class Attention {
 public:
  virtual ~Attention() = default;

  // input -> out [tokens, model_dim], the update of the
  // residual stream. Stores this step's keys and values in `cache` first, so that prefill and
  // decode are the same call.
  virtual void Forward(
      const LayerInput& input,
      const StepBatch& batch,
      const KvCache::LayerView& cache,
      Scratch& scratch,
      TensorView out,
      ForwardObserver* observer
  ) const = 0;

  virtual int64_t ScratchBytes(int64_t tokens) const = 0;
  virtual std::vector<const Router*> Routers() const = 0;
};

}  // namespace switchyard
