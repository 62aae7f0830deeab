#include "engine/model/families/switchhead.h"

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "engine/model/dense_feed_forward.h"
#include "engine/model/expert_feed_forward.h"
#include "engine/model/families/activation_names.h"
#include "engine/model/switch_head_attention.h"

namespace switchyard {
namespace {

constexpr float kEpsilon = 1e-5F;  // the framework's default; no argument changes it

constexpr char kEmbedding[] = "embedding.weight";

bool Recognizes(ConfigReader& config) {
  return config.Has("transformer.variant") && config.Has("moe.att.variant");
}

// Options of the training code that change the result; the ones below are for parts that this
// version does not have.
void RefuseUnsupported(ConfigReader& config) {
  for (const char* name :
       {"moe.att.norm_qk",
        "moe.att.shared_experts",
        "moe.att.qside_n_experts",
        "moe.att.kq_n_experts",
        "moe.att.norm_ret",
        "moe.norm_keys",
        "lm.trafo.last_layer_context",
        "tied_embedding",
        "embedding_size"}) {
    config.Refuse(name);
  }
  config.Refuse("moe.sel_norm", {"none"});
  config.Refuse("moe.topk_mode", {"full"});
  const std::string variant = config.TextOr({"transformer.variant"}, "standard");
  if (variant != "preln_moeatt" && variant != "preln_moe") {
    config.Fail(Concat("transformer.variant is ", variant, "; supported: preln_moeatt, preln_moe"));
  }
  const std::string attention = config.TextOr({"moe.att.variant"}, "moa");
  if (attention != "full_rope") {
    config.Fail(Concat("moe.att.variant is ", attention, "; supported: full_rope"));
  }
  if (variant == "preln_moe" && !config.FlagOr({"moe.att.enable"}, false)) {
    config.Fail(
        "moe.att.enable is 0 with transformer.variant preln_moe: dense attention is not supported"
    );
  }
}

GateKind ReadAttentionGate(ConfigReader& config) {
  const std::string mode = config.TextOr({"moe.att.selection_mode"}, "sigmoid");
  if (mode != "sigmoid" && mode != "softmax") {
    config.Fail(Concat("moe.att.selection_mode is ", mode, "; supported: sigmoid, softmax"));
  }
  return mode == "softmax" ? GateKind::kSoftmaxSelected : GateKind::kSigmoid;
}

GateKind ReadFeedForwardGate(ConfigReader& config) {
  const std::string mode = config.TextOr({"moe.selection_mode"}, "sigmoid");
  if (mode == "sigmoid") {
    return GateKind::kSigmoid;  // monotonic, so it may as well act after the choice
  }
  if (mode != "gate") {
    config.Fail(Concat("moe.selection_mode is ", mode, "; supported: sigmoid, gate"));
  }
  return config.FlagOr({"moe.activation_after_topk"}, false) ? GateKind::kSoftmaxSelected
                                                             : GateKind::kSoftmaxAll;
}

AttentionConfig ReadAttention(ConfigReader& config, int64_t model_dim) {
  AttentionConfig attention;
  attention.kind = AttentionKind::kSwitchHead;
  attention.kv_heads = config.Positive({"transformer.n_heads"});
  attention.key_dim =
      config.PositiveOr({"transformer.head_projection_size"}, model_dim / attention.kv_heads);
  attention.value_dim = config.PositiveOr({"moe.att.v_size"}, attention.key_dim);
  attention.router = {
      .groups = attention.kv_heads,
      .experts = config.PositiveOr({"moe.att.n_experts"}, 4),
      .top_k = config.PositiveOr({"moe.att.k"}, 2),
      .gate = ReadAttentionGate(config),
  };
  attention.query_routed = config.FlagOr({"moe.att.q_expert"}, true);
  attention.key_routed = config.FlagOr({"moe.att.k_expert"}, true);
  attention.value_routed = config.FlagOr({"moe.att.v_expert"}, true);
  attention.output_routed = config.FlagOr({"moe.att.o_expert"}, true);
  attention.positions = PositionKind::kRotary;
  const double fraction = config.NumberOr({"rope.rotate_fraction"}, 0.5);
  if (fraction < 0 || fraction > 1) {
    config.Fail(Concat("rope.rotate_fraction is ", fraction, ", not in [0, 1]"));
  }
  const auto rotary_dims = static_cast<int64_t>(fraction * static_cast<double>(attention.key_dim));
  attention.rotary_dims = rotary_dims - rotary_dims % 2;  // pairs: the training code rounds down
  attention.rotary_base = config.NumberOr({"rope.base"}, 10000);
  // The training code multiplies query and key by key_dim^(-1/4) each.
  attention.scale = static_cast<float>(1 / std::sqrt(static_cast<double>(attention.key_dim)));
  return attention;
}

FeedForwardConfig ReadFeedForward(ConfigReader& config, int64_t model_dim) {
  FeedForwardConfig feed_forward;
  feed_forward.activation = ReadActivation(config, {"transformer.activation"}, "relu");
  if (config.TextOr({"transformer.variant"}, "") == "preln_moeatt") {
    feed_forward.kind = FeedForwardKind::kDense;
    const double multiplier = config.NumberOr({"transformer.ff_multiplier"}, 2.0);
    feed_forward.hidden_dim = static_cast<int64_t>(static_cast<double>(model_dim) * multiplier);
    if (multiplier <= 0 || multiplier > 1000 || feed_forward.hidden_dim < 1) {
      config.Fail(
          Concat("transformer.ff_multiplier is ", multiplier, ", which gives no feed-forward width")
      );
    }
    return feed_forward;
  }
  feed_forward.kind = FeedForwardKind::kExperts;
  feed_forward.hidden_dim = config.PositiveOr({"moe.expert_size"}, 128);
  feed_forward.router = {
      .groups = 1,
      .experts = config.PositiveOr({"moe.n_experts"}, 128),
      .top_k =
          config.PositiveOr({"pkm.n_heads"}, 1),  // the training code's name for experts per token
      .gate = ReadFeedForwardGate(config),
  };
  return feed_forward;
}

StatusOr<ModelConfig> ReadConfig(ConfigReader& config) {
  RefuseUnsupported(config);
  ModelConfig model;
  model.family = "switchhead";
  model.vocabulary_size = 0;  // not an argument: the embedding tells
  model.model_dim = config.PositiveOr({"state_size"}, 128);
  model.layers = config.PositiveOr({"transformer.encoder_n_layers"}, 3);
  model.context_tokens = config.PositiveOr({"lm.unroll"}, 100) *
                         (1 + config.NonNegativeOr({"lm.trafo.context_blocks"}, 1));
  model.norm = {.kind = NormKind::kLayer, .block_epsilon = kEpsilon, .final_epsilon = kEpsilon};
  model.attention = ReadAttention(config, model.model_dim);
  model.feed_forward = ReadFeedForward(config, model.model_dim);
  RETURN_IF_ERROR(config.status());
  return model;
}

struct ProjectionName {
  Projection projection;
  RouterKind router_kind;
  const char* letter;
};
constexpr ProjectionName kNames[] = {
    {Projection::kQuery, RouterKind::kAttentionQuery, "q"},
    {Projection::kKey, RouterKind::kAttentionKey, "k"},
    {Projection::kValue, RouterKind::kAttentionValue, "v"},
    {Projection::kOutput, RouterKind::kAttentionOutput, "o"},
};

bool IsRouted(const AttentionConfig& config, Projection projection) {
  switch (projection) {
    case Projection::kQuery:
      return config.query_routed;
    case Projection::kKey:
      return config.key_routed;
    case Projection::kValue:
      return config.value_routed;
    case Projection::kOutput:
      return config.output_routed;
  }
  return false;
}

// Whose router a routed projection uses: its own if the checkpoint has one, else q asks o, k asks
// v, v asks o.
StatusOr<Projection> RouterOwner(
    const WeightLoader& weights, const std::string& prefix, Projection projection
) {
  const auto has = [&](const char* letter) { return weights.Has(prefix + "selections." + letter); };
  const char* own = kNames[static_cast<size_t>(projection)].letter;
  if (has(own)) {
    return projection;
  }
  const bool asks_value = projection == Projection::kKey && has("v");
  if (!asks_value && !has("o")) {
    return DataLoss(
        "tensor ",
        prefix,
        "selections.",
        own,
        " is missing, and no other router can stand in for it"
    );
  }
  return asks_value ? Projection::kValue : Projection::kOutput;
}

StatusOr<std::vector<SwitchHeadRouter>> LoadRouters(
    const LayerLoader& loader, const std::string& prefix
) {
  std::vector<SwitchHeadRouter> routers;
  for (const ProjectionName& owner : kNames) {
    SwitchHeadRouter shared;
    for (const ProjectionName& user : kNames) {
      if (IsRouted(loader.model.attention, user.projection)) {
        ASSIGN_OR_RETURN(
            const Projection used, RouterOwner(loader.weights, prefix, user.projection)
        );
        if (used == owner.projection) {
          shared.projections.push_back(user.projection);
        }
      }
    }
    if (shared.projections.empty()) {
      continue;
    }
    ASSIGN_OR_RETURN(
        shared.router,
        loader.LinearRouter(
            loader.model.attention.router, owner.router_kind, prefix + "selections." + owner.letter
        )
    );
    routers.push_back(std::move(shared));
  }
  return routers;
}

StatusOr<Weight> LoadProjection(
    const LayerLoader& loader, const std::string& prefix, const ProjectionName& name
) {
  const AttentionConfig& config = loader.model.attention;
  const bool is_output = name.projection == Projection::kOutput;
  const bool is_value_side = is_output || name.projection == Projection::kValue;
  const int64_t head_dim = is_value_side ? config.value_dim : config.key_dim;
  const int64_t model_dim = loader.model.model_dim;
  const std::string tensor = prefix + "projections." + name.letter;
  if (IsRouted(config, name.projection)) {
    const ExpertStackShape shape = {
        .experts = config.kv_heads * config.router.experts,
        .active_experts = config.kv_heads * config.router.top_k,
        .in_features = is_output ? head_dim : model_dim,
        .out_features = is_output ? model_dim : head_dim,
    };
    return loader.weights.ExpertStack(tensor, WeightLayout::kInOut, shape);
  }
  const int64_t width = config.kv_heads * head_dim;
  return loader.weights.Dense(
      tensor, WeightLayout::kOutIn, is_output ? width : model_dim, is_output ? model_dim : width
  );
}

StatusOr<std::unique_ptr<Attention>> LoadAttention(
    const LayerLoader& loader, const std::string& prefix
) {
  SwitchHeadWeights weights;
  for (const ProjectionName& name : kNames) {
    ASSIGN_OR_RETURN(
        weights.projections[static_cast<size_t>(name.projection)],
        LoadProjection(loader, prefix, name)
    );
  }
  ASSIGN_OR_RETURN(std::vector<SwitchHeadRouter> routers, LoadRouters(loader, prefix));
  return std::make_unique<SwitchHeadAttention>(
      loader.ops, loader.model.attention, std::move(routers), weights
  );
}

StatusOr<std::unique_ptr<FeedForward>> LoadDenseFeedForward(
    const LayerLoader& loader, const std::string& prefix
) {
  const int64_t model_dim = loader.model.model_dim;
  const int64_t hidden_dim = loader.model.feed_forward.hidden_dim;
  DenseFeedForwardWeights dense;
  ASSIGN_OR_RETURN(
      dense.up,
      loader.weights.Dense(prefix + "linear1.weight", WeightLayout::kOutIn, model_dim, hidden_dim)
  );
  ASSIGN_OR_RETURN(dense.up_bias, loader.weights.Vector(prefix + "linear1.bias", hidden_dim));
  ASSIGN_OR_RETURN(
      dense.down,
      loader.weights.Dense(prefix + "linear2.weight", WeightLayout::kOutIn, hidden_dim, model_dim)
  );
  ASSIGN_OR_RETURN(dense.down_bias, loader.weights.Vector(prefix + "linear2.bias", model_dim));
  return std::make_unique<DenseFeedForward>(loader.ops, loader.model.feed_forward, dense);
}

StatusOr<std::unique_ptr<FeedForward>> LoadExpertFeedForward(
    const LayerLoader& loader, const std::string& prefix
) {
  const FeedForwardConfig& config = loader.model.feed_forward;
  const ExpertStackShape up = {
      .experts = config.router.experts,
      .active_experts = config.router.top_k,
      .in_features = loader.model.model_dim,
      .out_features = config.hidden_dim,
  };
  const ExpertStackShape down = {
      .experts = config.router.experts,
      .active_experts = config.router.top_k,
      .in_features = config.hidden_dim,
      .out_features = loader.model.model_dim,
  };
  ExpertFeedForwardWeights experts;
  ASSIGN_OR_RETURN(
      experts.up, loader.weights.ExpertStack(prefix + "keys", WeightLayout::kInOut, up)
  );
  ASSIGN_OR_RETURN(
      experts.down, loader.weights.ExpertStack(prefix + "values", WeightLayout::kInOut, down)
  );
  ASSIGN_OR_RETURN(
      std::unique_ptr<Router> router,
      loader.LinearRouter(config.router, RouterKind::kFeedForward, prefix + "expert_sel")
  );
  loader.weights.Ignore(prefix + "kv_sel_counts_100");  // statistics of the training
  loader.weights.Ignore(prefix + "iter");
  return std::make_unique<ExpertFeedForward>(loader.ops, config, std::move(router), experts);
}

StatusOr<Decoder> BuildDecoder(const ModelConfig& model, WeightLoader& weights, Ops& ops) {
  Decoder decoder;
  ASSIGN_OR_RETURN(
      decoder.embedding, weights.Embedding(kEmbedding, model.vocabulary_size, model.model_dim)
  );
  for (int64_t layer = 0; layer < model.layers; ++layer) {
    const LayerLoader loader = {.model = model, .weights = weights, .ops = ops, .layer = layer};
    const std::string prefix = Concat("unique_layers.", layer, ".");
    ASSIGN_OR_RETURN(
        const NormWeights norm1, weights.Norm(prefix + "norm1.", model.norm.kind, model.model_dim)
    );
    ASSIGN_OR_RETURN(
        std::unique_ptr<Attention> attention, LoadAttention(loader, prefix + "self_attn.")
    );
    ASSIGN_OR_RETURN(
        const NormWeights norm2, weights.Norm(prefix + "norm2.", model.norm.kind, model.model_dim)
    );
    ASSIGN_OR_RETURN(
        std::unique_ptr<FeedForward> feed_forward,
        model.feed_forward.kind == FeedForwardKind::kDense
            ? LoadDenseFeedForward(loader, prefix)
            : LoadExpertFeedForward(loader, prefix + "pkm.")
    );
    decoder.blocks.push_back(std::make_unique<Block>(
        ops, model.norm, norm1, std::move(attention), norm2, std::move(feed_forward)
    ));
  }
  ASSIGN_OR_RETURN(decoder.final_norm, weights.Norm("out_norm.", model.norm.kind, model.model_dim));
  ASSIGN_OR_RETURN(
      decoder.head,
      weights.Dense("output.weight", WeightLayout::kOutIn, model.model_dim, model.vocabulary_size)
  );
  ASSIGN_OR_RETURN(decoder.head_bias, weights.Vector("output.bias", model.vocabulary_size));
  return decoder;
}

}  // namespace

Family SwitchHeadFamily() {
  return {"switchhead", kEmbedding, Recognizes, ReadConfig, BuildDecoder};
}

}  // namespace switchyard
