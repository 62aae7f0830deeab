#pragma once

#include <memory>
#include <string>

#include "engine/model/families/family.h"

namespace switchyard {

// SwitchHead attention as the training code describes and stores it: moe.att.* arguments, tensors
// projections.* and selections.*. SwitchHead and MoEUT checkpoints share it.

// Everything but the positions.
AttentionConfig ReadSwitchHeadAttention(ConfigReader& config, int64_t model_dim);

// `prefix` ends in "self_attn.".
StatusOr<std::unique_ptr<Attention>> LoadTrainingSwitchHead(
    const LayerLoader& loader, const std::string& prefix
);

}  // namespace switchyard
