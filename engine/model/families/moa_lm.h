#pragma once

#include "engine/model/families/family.h"

namespace switchyard {

// Language models with MoA attention (Zhang et al., 2022, arXiv:2210.05144) in the
// re-implementation of the SwitchHead training code: one key head and one value head for all
// experts, Transformer-XL positions, a trained scale.
Family MoaLmFamily();

}  // namespace switchyard
