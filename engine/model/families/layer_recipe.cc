#include "engine/model/families/layer_recipe.h"

#include <utility>

namespace switchyard {

StatusOr<std::vector<std::unique_ptr<Block>>> BuildBlocks(
    const ModelConfig& model, WeightLoader& weights, Ops& ops, const LayerRecipe& recipe
) {
  const NormKind norm = model.norm.kind;
  std::vector<std::unique_ptr<Block>> blocks;
  for (int64_t layer = 0; layer < model.layers; ++layer) {
    const LayerLoader loader = {.model = model, .weights = weights, .ops = ops, .layer = layer};
    const std::string prefix = Concat(recipe.layers, model.StoredLayer(layer), ".");
    ASSIGN_OR_RETURN(
        const NormWeights attention_norm,
        weights.Norm(prefix + recipe.attention_norm, norm, model.model_dim)
    );
    ASSIGN_OR_RETURN(
        std::unique_ptr<Attention> attention,
        recipe.make_attention(loader, prefix + recipe.attention)
    );
    ASSIGN_OR_RETURN(
        const NormWeights feed_forward_norm,
        weights.Norm(prefix + recipe.feed_forward_norm, norm, model.model_dim)
    );
    ASSIGN_OR_RETURN(
        std::unique_ptr<FeedForward> feed_forward,
        recipe.make_feed_forward(loader, prefix + recipe.feed_forward)
    );
    blocks.push_back(std::make_unique<Block>(
        ops,
        model.norm,
        attention_norm,
        std::move(attention),
        feed_forward_norm,
        std::move(feed_forward)
    ));
  }
  return blocks;
}

StatusOr<Weight> LoadHead(
    const ModelConfig& model,
    WeightLoader& weights,
    const std::string& embedding,
    const std::string& head
) {
  if (model.tied_head) {
    weights.Ignore(head);  // some files store the tied head a second time
    return weights.TiedHead(embedding, model.vocabulary_size, model.model_dim);
  }
  return weights.Dense(head, WeightLayout::kOutIn, model.model_dim, model.vocabulary_size);
}

}  // namespace switchyard
