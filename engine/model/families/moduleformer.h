#pragma once

#include "engine/model/families/family.h"

namespace switchyard {

// ModuleFormer and MoLM (Shen et al., 2023, arXiv:2306.04640): MoA attention with stick-breaking
// weights and no positions. In the published MoLM models the normalised input is key and value.
Family ModuleFormerFamily();

}  // namespace switchyard
