#include "engine/model/families/known_families.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "engine/model/expert_feed_forward.h"
#include "engine/model/families/activation_names.h"
#include "engine/model/families/layer_recipe.h"
#include "engine/model/moa_attention.h"

namespace switchyard {
namespace {

constexpr char kEmbedding[] = "transformer.wte.weight";
// Every norm is built without an eps; layer_norm_epsilon of the config reaches none of them.
constexpr float kEpsilon = 1e-5F;

bool Recognizes(ConfigReader& config) {
  return config.TextOr({"model_type"}, "") == "moduleformer";
}

RouterConfig ReadRouter(ConfigReader& config, const char* experts, const char* top_k) {
  RouterConfig router = {
      .groups = 1,
      .experts = config.PositiveOr({experts}, 32),
      .top_k = config.PositiveOr({top_k}, 2),
      .gate = GateKind::kSoftmaxAll,
  };
  const std::string kind = config.TextOr({"gate_type"}, "mlp");
  if (kind == "mlp") {
    router.score = RouterScore::kMlp;
  } else if (kind == "gmm") {
    router.score = RouterScore::kCosine;
  } else if (kind != "linear") {
    config.Fail(Concat("gate_type is ", kind, "; supported: mlp, linear, gmm"));
  }
  if (router.score != RouterScore::kLinear) {
    router.score_dim = config.PositiveOr({"gating_size"}, 256);
  }
  return router;
}

StatusOr<ModelConfig> ReadConfig(ConfigReader& config) {
  ModelConfig model;
  model.family = "moduleformer";
  model.vocabulary_size = config.PositiveOr({"vocab_size"}, 50295);
  model.model_dim = config.PositiveOr({"n_embd"}, 1024);
  model.layers = config.PositiveOr({"n_layer"}, 24);
  model.stored_layers = model.layers;
  model.context_tokens =
      config.PositiveOr({"block_size"}, 512) + config.NonNegativeOr({"history_length"}, 512);
  model.norm = {
      .placement = NormPlacement::kBefore,
      .kind = NormKind::kLayer,
      .block_epsilon = kEpsilon,
      .final_epsilon = kEpsilon,
  };
  model.tied_head = config.FlagOr({"tie_word_embeddings"}, false);
  for (const int32_t id : config.TokenIds("bos_token_id")) {
    model.bos_id = id;
  }
  model.eos_ids = config.TokenIds("eos_token_id");

  AttentionConfig& attention = model.attention;
  attention.kind = AttentionKind::kMoa;
  attention.kv_heads = config.PositiveOr({"n_head"}, 8);
  const int64_t width = config.PositiveOr({"att_hidden"}, 512);
  if (width % attention.kv_heads != 0) {
    config.Fail(Concat("att_hidden is ", width, ", not a multiple of n_head, ", attention.kv_heads)
    );
  }
  attention.key_dim = std::max<int64_t>(width / attention.kv_heads, 1);
  attention.value_dim = attention.key_dim;
  attention.value_is_key = width == model.model_dim && attention.kv_heads == 1;
  attention.positions = PositionKind::kStickBreaking;
  attention.scale = static_cast<float>(1 / std::sqrt(static_cast<double>(attention.key_dim)));
  attention.router = ReadRouter(config, "n_att_experts", "k_att");

  model.feed_forward = {
      .kind = FeedForwardKind::kExperts,
      .hidden_dim = config.PositiveOr({"ffd_hidden"}, 2048),
      .activation = ReadActivation(config, {"activation_function"}, "gelu_new"),
      .gated = false,
      .expert_stream = StreamForm::kNormed,
      .router = ReadRouter(config, "n_mlp_experts", "k_mlp"),
  };
  RETURN_IF_ERROR(config.status());
  return model;
}

// exp(temperature) * unit(centroid) for each expert: what does not depend on the token.
StatusOr<Weight> LoadCentroids(
    WeightLoader& weights, const RouterConfig& config, const std::string& prefix
) {
  const std::string name = prefix + "expert_centroids";
  ASSIGN_OR_RETURN(
      std::vector<float> centroids, weights.Floats(name, {config.experts, config.score_dim})
  );
  ASSIGN_OR_RETURN(
      const std::vector<float> temperature, weights.Floats(prefix + "temperature", {1})
  );
  const double factor = std::exp(static_cast<double>(temperature[0]));
  for (int64_t expert = 0; expert < config.experts; ++expert) {
    float* centroid = centroids.data() + expert * config.score_dim;
    double square_sum = 0;
    for (int64_t i = 0; i < config.score_dim; ++i) {
      square_sum += static_cast<double>(centroid[i]) * static_cast<double>(centroid[i]);
    }
    const double scale = factor / std::max(std::sqrt(square_sum), 1e-12);
    for (int64_t i = 0; i < config.score_dim; ++i) {
      centroid[i] = static_cast<float>(static_cast<double>(centroid[i]) * scale);
    }
  }
  return weights.Computed(name, WeightRole::kDense, {config.experts, config.score_dim}, centroids);
}

// `prefix` ends in "gate.".
StatusOr<std::unique_ptr<Router>> LoadRouter(
    const LayerLoader& loader,
    const RouterConfig& config,
    RouterKind kind,
    const std::string& prefix
) {
  const int64_t model_dim = loader.model.model_dim;
  WeightLoader& weights = loader.weights;
  if (config.score == RouterScore::kLinear) {
    return loader.LinearRouter(config, kind, prefix + "w_gate.0.weight");
  }
  RouterWeights router;
  if (config.score == RouterScore::kMlp) {
    const std::string inner = prefix + "w_gate.0.";
    ASSIGN_OR_RETURN(
        router.inner,
        weights.Dense(inner + "weight", WeightLayout::kOutIn, model_dim, config.score_dim)
    );
    ASSIGN_OR_RETURN(router.inner_bias, weights.Vector(inner + "bias", config.score_dim));
    weights.WarnUnlessFinite(inner + "weight");
    weights.WarnUnlessFinite(prefix + "w_gate.3.weight");
    ASSIGN_OR_RETURN(
        router.score,
        weights.Dense(
            prefix + "w_gate.3.weight", WeightLayout::kOutIn, config.score_dim, config.experts
        )
    );
  } else {
    weights.WarnUnlessFinite(prefix + "w_gate.weight");
    weights.WarnUnlessFinite(prefix + "expert_centroids");
    ASSIGN_OR_RETURN(
        router.inner,
        weights.Dense(prefix + "w_gate.weight", WeightLayout::kOutIn, model_dim, config.score_dim)
    );
    ASSIGN_OR_RETURN(router.score, LoadCentroids(weights, config, prefix));
    const auto width = static_cast<double>(config.score_dim);
    const std::vector<float> unit(
        static_cast<size_t>(config.score_dim), static_cast<float>(1 / std::sqrt(width))
    );
    router.unit = weights.Computed(prefix + "unit", WeightRole::kVector, {config.score_dim}, unit);
  }
  return Router::Create(loader.ops, config, loader.layer, kind, router);
}

StatusOr<std::unique_ptr<Attention>> LoadAttention(
    const LayerLoader& loader, const std::string& prefix
) {
  const AttentionConfig& config = loader.model.attention;
  const int64_t model_dim = loader.model.model_dim;
  const int64_t width = config.kv_heads * config.key_dim;
  WeightLoader& weights = loader.weights;
  ASSIGN_OR_RETURN(
      MoaWeights moa,
      loader.MoaMatrices(
          WeightLayout::kInOut,
          prefix + "q_proj.experts.weight",
          prefix + "q_proj.output_experts.weight"
      )
  );
  if (!config.value_is_key) {
    ASSIGN_OR_RETURN(
        moa.key, weights.Dense(prefix + "k_proj.weight", WeightLayout::kOutIn, model_dim, width)
    );
    ASSIGN_OR_RETURN(moa.key_bias, weights.Vector(prefix + "k_proj.bias", width));
    ASSIGN_OR_RETURN(
        moa.value, weights.Dense(prefix + "v_proj.weight", WeightLayout::kOutIn, model_dim, width)
    );
    ASSIGN_OR_RETURN(moa.value_bias, weights.Vector(prefix + "v_proj.bias", width));
  }
  ASSIGN_OR_RETURN(
      std::unique_ptr<Router> router,
      LoadRouter(loader, config.router, RouterKind::kAttention, prefix + "q_proj.gate.")
  );
  weights.Ignore(prefix + "mask");  // constants that the reference stores
  weights.Ignore(prefix + "cum_weight");
  return std::make_unique<MoaAttention>(loader.ops, config, std::move(router), moa, nullptr);
}

StatusOr<std::unique_ptr<FeedForward>> LoadFeedForward(
    const LayerLoader& loader, const std::string& prefix
) {
  const FeedForwardConfig& config = loader.model.feed_forward;
  ASSIGN_OR_RETURN(
      const ExpertFeedForwardWeights experts,
      loader.ExpertMatrices(
          WeightLayout::kInOut, prefix + "experts.weight", prefix + "output_experts.weight"
      )
  );
  ASSIGN_OR_RETURN(
      std::unique_ptr<Router> router,
      LoadRouter(loader, config.router, RouterKind::kFeedForward, prefix + "gate.")
  );
  return std::make_unique<ExpertFeedForward>(loader.ops, config, std::move(router), experts);
}

StatusOr<Decoder> BuildDecoder(const ModelConfig& model, WeightLoader& weights, Ops& ops) {
  const LayerRecipe recipe = {
      .layers = "transformer.h.",
      .attention_norm = "ln_1.",
      .attention = "attn.",
      .feed_forward_norm = "ln_2.",
      .feed_forward = "mlpf.",
      .make_attention = LoadAttention,
      .make_feed_forward = LoadFeedForward,
  };
  Decoder decoder;
  ASSIGN_OR_RETURN(
      decoder.embedding, weights.Embedding(kEmbedding, model.vocabulary_size, model.model_dim)
  );
  ASSIGN_OR_RETURN(decoder.blocks, BuildBlocks(model, weights, ops, recipe));
  ASSIGN_OR_RETURN(
      decoder.final_norm, weights.Norm("transformer.ln_f.", model.norm.kind, model.model_dim)
  );
  ASSIGN_OR_RETURN(decoder.head, LoadHead(model, weights, kEmbedding, "lm_head.weight"));
  return decoder;
}

}  // namespace

Family ModuleFormerFamily() {
  return {"moduleformer", kEmbedding, Recognizes, ReadConfig, BuildDecoder};
}

}  // namespace switchyard
