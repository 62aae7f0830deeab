#pragma once

#include "engine/model/families/family.h"

namespace switchyard {

// SwitchHead and SwitchAll language models of the public training code (Csordas et al., 2023,
// arXiv:2312.07987). config.json is that code's flat argument dictionary.
Family SwitchHeadFamily();

}  // namespace switchyard
