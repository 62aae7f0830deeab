#include "engine/model/families/known_families.h"

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "engine/model/expert_feed_forward.h"
#include "engine/model/families/layer_recipe.h"
#include "engine/model/families/switch_head_loading.h"

namespace switchyard {
namespace {

constexpr char kEmbedding[] = "embedding.weight";
constexpr float kEpsilon = 1e-5F;         // the library fixes it, as
constexpr double kRotaryFraction = 0.5;   // these
constexpr int64_t kContextTokens = 1024;  // what the published models were trained with

bool Recognizes(ConfigReader& config) {
  return config.Has("n_tokens") && config.Has("att_n_experts") && config.Has("ff_n_experts");
}

StatusOr<ModelConfig> ReadConfig(ConfigReader& config) {
  ModelConfig model;
  model.family = "moeut";
  model.vocabulary_size = config.Positive({"n_tokens"});
  model.model_dim = config.Positive({"d_model"});
  model.stored_layers = config.PositiveOr({"group_size"}, 2);
  // A remainder that does not fill a group is not run.
  model.layers = config.Positive({"n_layers"}) / model.stored_layers * model.stored_layers;
  model.context_tokens = config.PositiveOr({"context_tokens"}, kContextTokens);
  model.norm = {
      .placement = NormPlacement::kBefore,
      .kind = NormKind::kLayer,
      .block_epsilon = kEpsilon,
      .final_epsilon = kEpsilon,
  };

  AttentionConfig& attention = model.attention;
  attention.kind = AttentionKind::kSwitchHead;
  attention.kv_heads = config.Positive({"n_heads"});
  attention.key_dim = config.PositiveOr({"d_head"}, model.model_dim / attention.kv_heads);
  attention.value_dim = attention.key_dim;
  const int64_t experts = config.Positive({"att_n_experts"});
  attention.router = {
      .groups = attention.kv_heads,
      .experts = experts,
      // With one expert the gate is all that is left of the router.
      .top_k = experts == 1 ? 1 : config.PositiveOr({"att_k"}, 2),
      .gate = GateKind::kSigmoid,
  };
  attention.value_routed = experts > 1;
  attention.output_routed = true;
  attention.value_stream = StreamForm::kRaw;
  attention.positions = PositionKind::kRotary;
  const auto rotary_dims =
      static_cast<int64_t>(kRotaryFraction * static_cast<double>(attention.key_dim));
  attention.rotary_dims = rotary_dims - rotary_dims % 2;
  attention.scale = static_cast<float>(1 / std::sqrt(static_cast<double>(attention.key_dim)));

  model.feed_forward = {
      .kind = FeedForwardKind::kExperts,
      .hidden_dim = config.PositiveOr({"ff_expert_size"}, 128),
      .activation = ActivationKind::kRelu,
      .gated = false,
      .expert_stream = StreamForm::kRaw,
      .router =
          {
              .groups = 1,
              .experts = config.Positive({"ff_n_experts"}),
              .top_k = config.PositiveOr({"ff_k"}, 8),
              .gate = GateKind::kSigmoid,
          },
  };
  if (model.layers == 0) {
    config.Fail(Concat("n_layers is less than group_size, ", model.stored_layers, ": nothing runs")
    );
  }
  RETURN_IF_ERROR(config.status());
  return model;
}

// The output matrix [model_dim, heads * head_dim] as one expert for each head, so that the gate of
// a head multiplies what comes out of it.
StatusOr<Weight> LoadGatedOutput(const LayerLoader& loader, const std::string& name) {
  const AttentionConfig& config = loader.model.attention;
  const int64_t model_dim = loader.model.model_dim;
  const int64_t head_dim = config.value_dim;
  const int64_t width = config.kv_heads * head_dim;
  ASSIGN_OR_RETURN(
      const std::vector<float> matrix, loader.weights.Floats(name, {model_dim, width})
  );
  std::vector<float> stack(matrix.size());
  for (int64_t head = 0; head < config.kv_heads; ++head) {
    for (int64_t row = 0; row < model_dim; ++row) {
      for (int64_t column = 0; column < head_dim; ++column) {
        stack[static_cast<size_t>((head * model_dim + row) * head_dim + column)] =
            matrix[static_cast<size_t>(row * width + head * head_dim + column)];
      }
    }
  }
  return loader.weights.Computed(
      name, WeightRole::kExpertStack, {config.kv_heads, model_dim, head_dim}, stack
  );
}

StatusOr<std::unique_ptr<Attention>> LoadAttention(
    const LayerLoader& loader, const std::string& prefix
) {
  const SwitchHeadNames names = {
      .projections = {prefix + "q.weight", prefix + "k.weight", prefix + "v", prefix + "o"},
      .selections = {prefix + "sel_q", prefix + "sel_k", prefix + "sel_v", prefix + "sel_o"},
      .distance_projection = "",
  };
  if (loader.model.attention.router.experts > 1) {
    return LoadSwitchHeadAttention(loader, names);
  }
  SwitchHeadWeights weights;
  for (const Projection projection : {Projection::kQuery, Projection::kKey, Projection::kValue}) {
    ASSIGN_OR_RETURN(
        weights.projections[static_cast<size_t>(projection)],
        LoadProjection(loader, names, projection)
    );
  }
  ASSIGN_OR_RETURN(
      weights.projections[static_cast<size_t>(Projection::kOutput)],
      LoadGatedOutput(loader, prefix + "o")
  );
  ASSIGN_OR_RETURN(std::vector<SwitchHeadRouter> routers, LoadRouters(loader, names));
  return std::make_unique<SwitchHeadAttention>(
      loader.ops, loader.model.attention, std::move(routers), weights, nullptr
  );
}

StatusOr<std::unique_ptr<FeedForward>> LoadFeedForward(
    const LayerLoader& loader, const std::string& prefix
) {
  const FeedForwardConfig& config = loader.model.feed_forward;
  ASSIGN_OR_RETURN(
      const ExpertFeedForwardWeights experts,
      loader.ExpertMatrices(WeightLayout::kInOut, prefix + "keys", prefix + "values")
  );
  ASSIGN_OR_RETURN(
      std::unique_ptr<Router> router,
      loader.LinearRouter(config.router, RouterKind::kFeedForward, prefix + "expert_sel")
  );
  return std::make_unique<ExpertFeedForward>(loader.ops, config, std::move(router), experts);
}

StatusOr<Decoder> BuildDecoder(const ModelConfig& model, WeightLoader& weights, Ops& ops) {
  const LayerRecipe recipe = {
      .layers = "transformer.layers.",
      .attention_norm = "ln1.",
      .attention = "attention.",
      .feed_forward_norm = "ln2.",
      .feed_forward = "ffn.",
      .make_attention = LoadAttention,
      .make_feed_forward = LoadFeedForward,
  };
  Decoder decoder;
  ASSIGN_OR_RETURN(
      decoder.embedding, weights.Embedding(kEmbedding, model.vocabulary_size, model.model_dim)
  );
  ASSIGN_OR_RETURN(decoder.blocks, BuildBlocks(model, weights, ops, recipe));
  ASSIGN_OR_RETURN(decoder.final_norm, weights.Norm("out_norm.", model.norm.kind, model.model_dim));
  ASSIGN_OR_RETURN(decoder.head, LoadHead(model, weights, kEmbedding, "lm_head.weight"));
  ASSIGN_OR_RETURN(decoder.head_bias, weights.Vector("lm_head.bias", model.vocabulary_size));
  return decoder;
}

}  // namespace

Family MoeutFamily() {
  return {"moeut", kEmbedding, Recognizes, ReadConfig, BuildDecoder};
}

}  // namespace switchyard
