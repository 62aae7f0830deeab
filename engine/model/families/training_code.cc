#include "engine/model/families/training_code.h"

#include <cmath>
#include <utility>

#include "engine/model/dense_feed_forward.h"
#include "engine/model/families/activation_names.h"

namespace switchyard {
namespace {

constexpr float kEpsilon = 1e-5F;  // the framework's default; no argument changes it

void RefuseUnsupported(ConfigReader& config) {
  for (const char* name :
       {"moe.att.norm_qk",
        "moe.att.shared_experts",
        "moe.att.qside_n_experts",
        "moe.att.kq_n_experts",
        "moe.att.norm_ret",
        "moe.norm_keys",
        "lm.trafo.last_layer_context",
        "lm.trafo.norm_input"}) {
    config.Refuse(name);
  }
  config.Refuse("moe.sel_norm", {"none"});
  config.Refuse("moe.topk_mode", {"full"});
}

bool IsPreNorm(const std::string& variant) {
  return variant.starts_with("preln_");
}

// moeatt: sparse attention and a dense feed-forward; moe: both sparse; moe_universal: both, layers
// shared.
std::string VariantWithoutNorm(const std::string& variant) {
  return IsPreNorm(variant) ? variant.substr(6) : variant;
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

FeedForwardConfig ReadFeedForward(ConfigReader& config, int64_t model_dim, bool is_dense) {
  FeedForwardConfig feed_forward;
  feed_forward.activation = ReadActivation(config, {"transformer.activation"}, "relu");
  if (is_dense) {
    feed_forward.kind = FeedForwardKind::kDense;
    const double multiplier = config.NumberOr({"transformer.ff_multiplier"}, 2.0);
    if (multiplier <= 0 || multiplier > 1000) {
      config.Fail(Concat("transformer.ff_multiplier is ", multiplier, ", not in (0, 1000]"));
      return feed_forward;
    }
    feed_forward.hidden_dim = static_cast<int64_t>(static_cast<double>(model_dim) * multiplier);
    return feed_forward;
  }
  feed_forward.kind = FeedForwardKind::kExperts;
  feed_forward.hidden_dim = config.PositiveOr({"moe.expert_size"}, 128);
  feed_forward.expert_stream =
      config.FlagOr({"moe.nonorm"}, false) ? StreamForm::kRaw : StreamForm::kNormed;
  feed_forward.hidden_bias = config.FlagOr({"moe.bias"}, false);
  feed_forward.output_bias = feed_forward.hidden_bias;
  feed_forward.router_bias = config.FlagOr({"moe.sel_bias"}, false);
  feed_forward.router = {
      .groups = 1,
      .experts = config.PositiveOr({"moe.n_experts"}, 128),
      .top_k = config.PositiveOr({"pkm.n_heads"}, 1),  // the code's name for experts per token
      .gate = ReadFeedForwardGate(config),
  };
  return feed_forward;
}

void ReadEmbedding(ConfigReader& config, ModelConfig& model) {
  const bool is_pre_norm = model.norm.placement == NormPlacement::kBefore;
  model.vocabulary_size = 0;  // not an argument: the embedding tells
  model.embedding_dim = config.PositiveOr({"embedding_size"}, model.model_dim);
  model.tied_head = config.FlagOr({"tied_embedding"}, false);
  const double usual_scale = is_pre_norm ? 1 : std::sqrt(static_cast<double>(model.model_dim));
  model.embedding_scale =
      static_cast<float>(config.NumberOr({"transformer.embedding_scale"}, usual_scale));
  if (model.embedding_dim != model.model_dim && model.embedding_scale != 1) {
    config.Fail("embedding_size with a scaled embedding is not supported");
  }
  if (!is_pre_norm) {
    // Its scale would not be in the checkpoint.
    config.Refuse("lm.trafo.embedding_mode_init", {"default"});
  }
}

StatusOr<std::unique_ptr<FeedForward>> LoadDense(
    const LayerLoader& loader, const std::string& prefix
) {
  const int64_t model_dim = loader.model.model_dim;
  const int64_t hidden_dim = loader.model.feed_forward.hidden_dim;
  WeightLoader& weights = loader.weights;
  DenseFeedForwardWeights dense;
  ASSIGN_OR_RETURN(
      dense.up,
      weights.Dense(prefix + "linear1.weight", WeightLayout::kOutIn, model_dim, hidden_dim)
  );
  ASSIGN_OR_RETURN(dense.up_bias, weights.Vector(prefix + "linear1.bias", hidden_dim));
  ASSIGN_OR_RETURN(
      dense.down,
      weights.Dense(prefix + "linear2.weight", WeightLayout::kOutIn, hidden_dim, model_dim)
  );
  ASSIGN_OR_RETURN(dense.down_bias, weights.Vector(prefix + "linear2.bias", model_dim));
  return std::make_unique<DenseFeedForward>(loader.ops, loader.model.feed_forward, dense);
}

// sigma-MoE; the three biases are options of the MoEUT training code.
StatusOr<std::unique_ptr<FeedForward>> LoadExperts(
    const LayerLoader& loader, const std::string& prefix
) {
  const FeedForwardConfig& config = loader.model.feed_forward;
  WeightLoader& weights = loader.weights;
  ASSIGN_OR_RETURN(
      ExpertFeedForwardWeights experts,
      loader.ExpertMatrices(WeightLayout::kInOut, prefix + "keys", prefix + "values")
  );
  if (config.hidden_bias) {
    const ExpertStackShape shape = {
        .experts = config.router.experts,
        .active_experts = config.router.top_k,
        .in_features = 0,
        .out_features = config.hidden_dim,
    };
    ASSIGN_OR_RETURN(experts.up_bias, weights.VectorStack(prefix + "bias", shape));
  }
  if (config.output_bias) {
    ASSIGN_OR_RETURN(experts.out_bias, weights.Vector(prefix + "o_bias", loader.model.model_dim));
  }
  RouterWeights router_weights;
  weights.WarnUnlessFinite(prefix + "expert_sel");
  ASSIGN_OR_RETURN(
      router_weights.score,
      weights.Dense(
          prefix + "expert_sel", WeightLayout::kOutIn, loader.model.model_dim, config.router.experts
      )
  );
  if (config.router_bias) {
    ASSIGN_OR_RETURN(
        router_weights.score_bias, weights.Vector(prefix + "sel_bias", config.router.experts)
    );
  }
  ASSIGN_OR_RETURN(
      std::unique_ptr<Router> router,
      Router::Create(
          loader.ops, config.router, loader.layer, RouterKind::kFeedForward, router_weights
      )
  );
  weights.Ignore(prefix + "kv_sel_counts_100");  // statistics of the training
  weights.Ignore(prefix + "iter");
  return std::make_unique<ExpertFeedForward>(loader.ops, config, std::move(router), experts);
}

StatusOr<Adapter> LoadAdapter(
    WeightLoader& weights, const std::string& prefix, int64_t in_features, int64_t out_features
) {
  Adapter adapter;
  ASSIGN_OR_RETURN(
      adapter.weight,
      weights.Dense(prefix + "weight", WeightLayout::kOutIn, in_features, out_features)
  );
  ASSIGN_OR_RETURN(adapter.bias, weights.Vector(prefix + "bias", out_features));
  return adapter;
}

Status LoadEnds(const ModelConfig& model, WeightLoader& weights, Decoder& decoder) {
  ASSIGN_OR_RETURN(
      decoder.embedding,
      weights.Embedding(kTrainingEmbedding, model.vocabulary_size, model.embedding_dim)
  );
  int64_t head_dim = model.model_dim;
  if (model.embedding_dim != model.model_dim) {
    ASSIGN_OR_RETURN(
        decoder.embedding_adapter,
        LoadAdapter(weights, "embedding_adapter.", model.embedding_dim, model.model_dim)
    );
    if (weights.Has("output_adapter.weight")) {
      ASSIGN_OR_RETURN(
          decoder.output_adapter,
          LoadAdapter(weights, "output_adapter.", model.model_dim, model.embedding_dim)
      );
      head_dim = model.embedding_dim;
    }
  }
  if (model.norm.before_logits) {
    ASSIGN_OR_RETURN(
        decoder.final_norm, weights.Norm("out_norm.", model.norm.kind, model.model_dim)
    );
  }
  if (model.tied_head) {
    ASSIGN_OR_RETURN(
        decoder.head, weights.TiedHead(kTrainingEmbedding, model.vocabulary_size, head_dim)
    );
    weights.Ignore("output.weight");  // the same tensor under its other name
  } else {
    ASSIGN_OR_RETURN(
        decoder.head,
        weights.Dense("output.weight", WeightLayout::kOutIn, head_dim, model.vocabulary_size)
    );
  }
  ASSIGN_OR_RETURN(decoder.head_bias, weights.Vector("output.bias", model.vocabulary_size));
  return OkStatus();
}

}  // namespace

ModelConfig ReadTrainingFrame(ConfigReader& config) {
  RefuseUnsupported(config);
  const std::string variant = config.TextOr({"transformer.variant"}, "standard");
  const std::string kind = VariantWithoutNorm(variant);
  if (kind != "moeatt" && kind != "moe" && kind != "moe_universal") {
    config.Fail(Concat(
        "transformer.variant is ",
        variant,
        "; supported: moeatt, moe and moe_universal, each with preln_ or without"
    ));
  }
  if (kind == "moe" && !config.FlagOr({"moe.att.enable"}, false)) {
    config.Fail("moe.att.enable is 0 with transformer.variant moe: dense attention is not supported"
    );
  }

  ModelConfig model;
  model.model_dim = config.PositiveOr({"state_size"}, 128);
  model.layers = config.PositiveOr({"transformer.encoder_n_layers"}, 3);
  model.stored_layers = model.layers;
  model.context_tokens = config.PositiveOr({"lm.unroll"}, 100) *
                         (1 + config.NonNegativeOr({"lm.trafo.context_blocks"}, 1));
  model.norm = {
      .placement = IsPreNorm(variant) ? NormPlacement::kBefore : NormPlacement::kAfter,
      .kind = NormKind::kLayer,
      .before_logits = IsPreNorm(variant) || config.FlagOr({"lm.trafo.force_out_norm"}, false),
      .block_epsilon = kEpsilon,
      .final_epsilon = kEpsilon,
  };
  model.feed_forward = ReadFeedForward(config, model.model_dim, kind == "moeatt");
  ReadEmbedding(config, model);
  return model;
}

GateKind ReadAttentionGate(ConfigReader& config) {
  const std::string mode = config.TextOr({"moe.att.selection_mode"}, "sigmoid");
  if (mode != "sigmoid" && mode != "softmax") {
    config.Fail(Concat("moe.att.selection_mode is ", mode, "; supported: sigmoid, softmax"));
  }
  return mode == "softmax" ? GateKind::kSoftmaxSelected : GateKind::kSigmoid;
}

void ReadRotary(ConfigReader& config, AttentionConfig& attention) {
  attention.positions = PositionKind::kRotary;
  const double fraction = config.NumberOr({"rope.rotate_fraction"}, 0.5);
  if (fraction < 0 || fraction > 1) {
    config.Fail(Concat("rope.rotate_fraction is ", fraction, ", not in [0, 1]"));
  }
  const auto rotary_dims = static_cast<int64_t>(fraction * static_cast<double>(attention.key_dim));
  attention.rotary_dims = rotary_dims - rotary_dims % 2;  // pairs: the training code rounds down
  attention.rotary_base = config.NumberOr({"rope.base"}, 10000);
}

StatusOr<Decoder> BuildTrainingDecoder(
    const ModelConfig& model,
    WeightLoader& weights,
    Ops& ops,
    const LayerRecipe::Maker<Attention>& make_attention
) {
  const bool is_dense = model.feed_forward.kind == FeedForwardKind::kDense;
  // Without norms of the layer (moe.nonorm) each part has its own inside: routers, q and k read it,
  // values and experts the raw stream.
  const bool norms_inside = model.attention.value_stream == StreamForm::kRaw;
  Decoder decoder;
  ASSIGN_OR_RETURN(
      decoder.blocks,
      BuildBlocks(
          model,
          weights,
          ops,
          {
              .layers = "unique_layers.",
              .attention_norm = norms_inside ? "self_attn.norm." : "norm1.",
              .attention = "self_attn.",
              .feed_forward_norm = norms_inside ? "pkm.norm." : "norm2.",
              .feed_forward = is_dense ? "" : "pkm.",
              .make_attention = make_attention,
              .make_feed_forward = is_dense ? LoadDense : LoadExperts,
          }
      )
  );
  RETURN_IF_ERROR(LoadEnds(model, weights, decoder));
  return decoder;
}

}  // namespace switchyard
