#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/model/families/family.h"

namespace switchyard {

// How a family's layers are named and made; what follows is the same for all of them. A name is the
// layer's prefix, "model.layers.3.", and the suffix given here.
struct LayerRecipe {
  template <typename Part>
  using Maker = std::function<
      StatusOr<std::unique_ptr<Part>>(const LayerLoader& loader, const std::string& prefix)>;

  std::string layers;             // "model.layers."; the stored layer's number and a dot follow
  std::string attention_norm;     // "input_layernorm."
  std::string attention;          // "self_attention."; handed to make_attention
  std::string feed_forward_norm;  // as attention_norm
  std::string feed_forward;       // as attention
  Maker<Attention> make_attention;
  Maker<FeedForward> make_feed_forward;
};

// The blocks in executed order; a stored layer that runs several times is loaded for each of them,
// which copies nothing. Errors name file and tensor.
StatusOr<std::vector<std::unique_ptr<Block>>> BuildBlocks(
    const ModelConfig& model, WeightLoader& weights, Ops& ops, const LayerRecipe& recipe
);

// The output head: the embedding once more when tied (a second copy under `head` is ignored then),
// else the matrix `head` [vocabulary, model_dim].
StatusOr<Weight> LoadHead(
    const ModelConfig& model,
    WeightLoader& weights,
    const std::string& embedding,
    const std::string& head
);

}  // namespace switchyard
