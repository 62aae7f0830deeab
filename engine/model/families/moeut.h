#pragma once

#include "engine/model/families/family.h"

namespace switchyard {

// MoEUT (Csordas et al., 2024, arXiv:2405.16039) as its library stores it: the state dictionary,
// and the constructor's keywords as config.json.
Family MoeutFamily();

}  // namespace switchyard
