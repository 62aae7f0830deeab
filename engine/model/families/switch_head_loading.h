#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "engine/model/families/family.h"
#include "engine/model/switch_head_attention.h"

namespace switchyard {

// What the tensors of a SwitchHead attention are called, by Projection.
struct SwitchHeadNames {
  std::array<std::string, kProjections> projections;
  std::array<std::string, kProjections> selections;  // routers
  std::string distance_projection;                   // only for Transformer-XL positions
};

// One projection: dense [heads * head_dim, model_dim] (the output: [model_dim, heads * head_dim]),
// or a stack of heads * experts matrices, [in, out] each.
StatusOr<Weight> LoadProjection(
    const LayerLoader& loader, const SwitchHeadNames& names, Projection projection
);

// The routers that the routed projections use, each once. Which have one of their own, and whose
// the others ask, is the config's to say; a router that it asks for has to be there.
StatusOr<std::vector<SwitchHeadRouter>> LoadRouters(
    const LayerLoader& loader, const SwitchHeadNames& names
);

// All of it, with the distance keys that the positions ask for.
StatusOr<std::unique_ptr<Attention>> LoadSwitchHeadAttention(
    const LayerLoader& loader, const SwitchHeadNames& names
);

}  // namespace switchyard
