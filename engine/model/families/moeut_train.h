#pragma once

#include "engine/model/families/family.h"

namespace switchyard {

// MoEUT checkpoints of the training code (Csordas et al., 2024, arXiv:2405.16039): SwitchHead
// attention and sigma-MoE feed-forward in a group of layers that is run several times.
Family MoeutTrainFamily();

}  // namespace switchyard
