#include "engine/model/families/known_families.h"

#include <cmath>
#include <string>
#include <utility>

#include "engine/model/expert_feed_forward.h"
#include "engine/model/families/activation_names.h"
#include "engine/model/families/layer_recipe.h"
#include "engine/model/moa_attention.h"

namespace switchyard {
namespace {

// Both code bases build the norms inside the layers without an eps, so the constructor's default
// holds there whatever the config says; rms_norm_eps reaches the final norm only.
constexpr float kBlockEpsilon = 1e-6F;

constexpr char kEmbedding[] = "model.embed_tokens.weight";

bool Recognizes(ConfigReader& config) {
  return config.TextOr({"model_type"}, "") == "jetmoe";
}

StatusOr<ModelConfig> ReadConfig(ConfigReader& config) {
  ModelConfig model;
  model.family = "jetmoe";
  model.vocabulary_size = config.PositiveOr({"vocab_size"}, 32000);
  model.model_dim = config.PositiveOr({"hidden_size"}, 2048);
  model.layers = config.PositiveOr({"num_hidden_layers", "num_layers"}, 12);
  model.stored_layers = model.layers;
  model.context_tokens = config.PositiveOr({"max_position_embeddings"}, 4096);
  model.norm = {
      .kind = NormKind::kRms,
      .block_epsilon = kBlockEpsilon,
      .final_epsilon = static_cast<float>(config.NumberOr({"rms_norm_eps"}, 1e-6)),
  };
  model.tied_head = config.FlagOr({"tie_word_embeddings"}, true);
  model.adds_bos = true;
  for (const int32_t id : config.TokenIds("bos_token_id")) {
    model.bos_id = id;
  }
  model.eos_ids = config.TokenIds("eos_token_id");

  const RouterConfig router = {
      .groups = 1,
      .experts = config.PositiveOr({"moe_num_experts", "num_local_experts"}, 8),
      .top_k = config.PositiveOr({"moe_top_k", "num_experts_per_tok"}, 2),
      .gate = GateKind::kSoftmaxSelected,
  };
  AttentionConfig& attention = model.attention;
  attention.kind = AttentionKind::kMoa;
  attention.kv_heads = config.PositiveOr({"num_key_value_heads"}, 16);
  attention.key_dim = config.PositiveOr({"kv_channels", "head_dim"}, 128);
  attention.value_dim = attention.key_dim;
  attention.router = router;
  attention.positions = PositionKind::kRotary;
  attention.rotary_dims = attention.key_dim;
  attention.rotary_base = config.NestedNumberOr(
      "rope_parameters", "rope_theta", config.NumberOr({"rope_theta"}, 10000)
  );
  attention.scale = static_cast<float>(1 / std::sqrt(static_cast<double>(attention.key_dim)));
  const int64_t query_heads =
      config.PositiveOr({"num_attention_heads"}, attention.kv_heads * router.top_k);
  if (query_heads != attention.kv_heads * router.top_k) {
    config.Fail(Concat(
        "num_attention_heads is ",
        query_heads,
        "; it must be num_key_value_heads times experts per token, ",
        attention.kv_heads * router.top_k
    ));
  }

  model.feed_forward = {
      .kind = FeedForwardKind::kExperts,
      .hidden_dim = config.PositiveOr({"ffn_hidden_size", "intermediate_size"}, 5632),
      .activation = ReadActivation(config, {"activation_function"}, "silu"),
      .gated = config.FlagOr({"glu"}, true),
      .output_bias = config.FlagOr({"bias"}, true),
      .router = router,
  };
  config.Refuse("rope_scaling");
  RETURN_IF_ERROR(config.status());
  return model;
}

StatusOr<std::unique_ptr<Attention>> LoadAttention(
    const LayerLoader& loader, const std::string& prefix
) {
  const ModelConfig& model = loader.model;
  WeightLoader& weights = loader.weights;
  const AttentionConfig& config = model.attention;
  const int64_t width = config.kv_heads * config.key_dim;
  ASSIGN_OR_RETURN(
      MoaWeights moa,
      loader.MoaMatrices(
          WeightLayout::kOutIn,
          prefix + "experts.input_linear.weight",
          prefix + "experts.output_linear.weight"
      )
  );
  ASSIGN_OR_RETURN(moa.output_bias, weights.Vector(prefix + "experts.bias", model.model_dim));
  const std::string kv = prefix + "kv_proj.weight";
  ASSIGN_OR_RETURN(moa.key, weights.DenseRows(kv, 2 * width, model.model_dim, 0, width));
  ASSIGN_OR_RETURN(moa.value, weights.DenseRows(kv, 2 * width, model.model_dim, width, 2 * width));
  ASSIGN_OR_RETURN(
      std::unique_ptr<Router> router,
      loader.LinearRouter(
          config.router, RouterKind::kAttention, prefix + "experts.router.layer.weight"
      )
  );
  return std::make_unique<MoaAttention>(loader.ops, config, std::move(router), moa, nullptr);
}

StatusOr<std::unique_ptr<FeedForward>> LoadFeedForward(
    const LayerLoader& loader, const std::string& prefix
) {
  const ModelConfig& model = loader.model;
  WeightLoader& weights = loader.weights;
  const FeedForwardConfig& config = model.feed_forward;
  ASSIGN_OR_RETURN(
      ExpertFeedForwardWeights experts,
      loader.ExpertMatrices(
          WeightLayout::kOutIn, prefix + "input_linear.weight", prefix + "output_linear.weight"
      )
  );
  if (config.output_bias) {
    ASSIGN_OR_RETURN(experts.out_bias, weights.Vector(prefix + "bias", model.model_dim));
  }
  ASSIGN_OR_RETURN(
      std::unique_ptr<Router> router,
      loader.LinearRouter(config.router, RouterKind::kFeedForward, prefix + "router.layer.weight")
  );
  return std::make_unique<ExpertFeedForward>(loader.ops, config, std::move(router), experts);
}

StatusOr<Decoder> BuildDecoder(const ModelConfig& model, WeightLoader& weights, Ops& ops) {
  const LayerRecipe recipe = {
      .layers = "model.layers.",
      .attention_norm = "input_layernorm.",
      .attention = "self_attention.",
      .feed_forward_norm = "post_attention_layernorm.",
      .feed_forward = "mlp.",
      .make_attention = LoadAttention,
      .make_feed_forward = LoadFeedForward,
  };
  Decoder decoder;
  ASSIGN_OR_RETURN(
      decoder.embedding, weights.Embedding(kEmbedding, model.vocabulary_size, model.model_dim)
  );
  ASSIGN_OR_RETURN(decoder.blocks, BuildBlocks(model, weights, ops, recipe));
  ASSIGN_OR_RETURN(
      decoder.final_norm, weights.Norm("model.norm.", model.norm.kind, model.model_dim)
  );
  ASSIGN_OR_RETURN(decoder.head, LoadHead(model, weights, kEmbedding, "lm_head.weight"));
  return decoder;
}

}  // namespace

Family JetMoeFamily() {
  return {"jetmoe", kEmbedding, Recognizes, ReadConfig, BuildDecoder};
}

}  // namespace switchyard
