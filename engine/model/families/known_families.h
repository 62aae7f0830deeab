#pragma once

#include "engine/model/families/family.h"

// The families that there are, each defined in the file of its name. family.cc lists them.

namespace switchyard {

// JetMoE (Shen et al., 2024, arXiv:2404.07413): MoA attention and gated expert feed-forward. Reads
// both spellings of its config.json, the original repository's and the transformers package's.
Family JetMoeFamily();

// Language models with MoA attention (Zhang et al., 2022, arXiv:2210.05144) in the
// re-implementation of the SwitchHead training code: one key head and one value head for all
// experts, Transformer-XL positions, a trained scale.
Family MoaLmFamily();

// ModuleFormer and MoLM (Shen et al., 2023, arXiv:2306.04640): MoA attention with stick-breaking
// weights and no positions. In the published MoLM models the normalised input is key and value.
Family ModuleFormerFamily();

// MoEUT (Csordas et al., 2024, arXiv:2405.16039) as its library stores it: the state dictionary,
// and the constructor's keywords as config.json.
Family MoeutFamily();

// MoEUT checkpoints of the training code (Csordas et al., 2024, arXiv:2405.16039): SwitchHead
// attention and sigma-MoE feed-forward in a group of layers that is run several times.
Family MoeutTrainFamily();

// SwitchHead and SwitchAll language models of the public training code (Csordas et al., 2023,
// arXiv:2312.07987). config.json is that code's flat argument dictionary.
Family SwitchHeadFamily();

}  // namespace switchyard
