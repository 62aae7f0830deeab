#pragma once

#include "engine/model/families/family.h"

namespace switchyard {

// JetMoE (Shen et al., 2024, arXiv:2404.07413): MoA attention and gated expert feed-forward. Reads
// both spellings of its config.json, the original repository's and the transformers package's.
Family JetMoeFamily();

}  // namespace switchyard
