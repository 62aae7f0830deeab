#pragma once

#include <cstdint>
#include <vector>

#include "engine/model/forward_observer.h"
#include "engine/model/layer_input.h"
#include "engine/model/router.h"
#include "engine/model/scratch.h"
#include "engine/model/step_batch.h"

namespace switchyard {

// The second half of a layer. Used only by the engine thread.
class FeedForward {
 public:
  virtual ~FeedForward() = default;

  // input -> out [tokens, model_dim], the update of the
  // residual stream.
  virtual void Forward(
      const LayerInput& input,
      const StepBatch& batch,
      Scratch& scratch,
      TensorView out,
      ForwardObserver* observer
  ) const = 0;

  virtual int64_t ScratchBytes(int64_t tokens) const = 0;
  virtual std::vector<const Router*> Routers() const = 0;
};

}  // namespace switchyard
