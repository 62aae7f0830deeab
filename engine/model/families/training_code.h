#pragma once

#include <functional>
#include <memory>
#include <string>

#include "engine/model/families/family.h"

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

// Makes the attention of one executed layer; `prefix` ends in "self_attn.".
using AttentionMaker = std::function<
    StatusOr<std::unique_ptr<Attention>>(const LayerLoader& loader, const std::string& prefix)>;

StatusOr<Decoder> BuildTrainingDecoder(
    const ModelConfig& model, WeightLoader& weights, Ops& ops, const AttentionMaker& make_attention
);

}  // namespace switchyard
