#pragma once

#include "engine/model/families/family.h"
#include "engine/model/families/layer_recipe.h"

namespace switchyard {

// What the language models of the SwitchHead, MoA and MoEUT training code share: a flat dictionary
// of arguments as config.json, the frame around the attention (embedding, adapters, norms,
// feed-forward, output head) and its tensor names. The families differ in their attention only.

inline constexpr char kTrainingEmbedding[] = "embedding.weight";

// Sizes, norms, feed-forward and embedding; everything but the attention. Refuses options that
// change the result and are not supported.
ModelConfig ReadTrainingFrame(ConfigReader& config);

// The gate of the attention routers, moe.att.selection_mode.
GateKind ReadAttentionGate(ConfigReader& config);

// Rotary width and base of the attention, rope.*.
void ReadRotary(ConfigReader& config, AttentionConfig& attention);

// `make_attention` gets a prefix that ends in "self_attn.".
StatusOr<Decoder> BuildTrainingDecoder(
    const ModelConfig& model,
    WeightLoader& weights,
    Ops& ops,
    const LayerRecipe::Maker<Attention>& make_attention
);

}  // namespace switchyard
