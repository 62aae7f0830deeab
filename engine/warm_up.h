#pragma once

#include "base/status.h"
#include "engine/block_pool.h"
#include "engine/model/model_config.h"
#include "engine/step_runner.h"

namespace switchyard {

// Takes one prompt token and one decode through the model, so that everything is paged in before
// the first request. Their routing counts as warm-up. INTERNAL when the device fails or the logits
// are not finite. Requires: no request holds blocks.
Status RunWarmUp(
    const ModelConfig& config, int32_t block_tokens, BlockPool& pool, StepRunner& runner
);

}  // namespace switchyard
