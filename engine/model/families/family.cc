#include "engine/model/families/family.h"

#include <array>
#include <cmath>
#include <utility>

#include "engine/model/families/known_families.h"

namespace switchyard {

StatusOr<std::unique_ptr<Router>> LayerLoader::LinearRouter(
    const RouterConfig& config, RouterKind kind, const std::string& name
) const {
  weights.WarnUnlessFinite(name);
  ASSIGN_OR_RETURN(
      const Weight score,
      weights.Dense(name, WeightLayout::kOutIn, model.model_dim, config.groups * config.experts)
  );
  return Router::Create(ops, config, layer, kind, {.score = score});
}

StatusOr<std::unique_ptr<DistanceKeys>> LayerLoader::LoadDistanceKeys(const std::string& name
) const {
  const AttentionConfig& attention = model.attention;
  if (attention.positions != PositionKind::kTransformerXl) {
    return std::unique_ptr<DistanceKeys>();
  }
  ASSIGN_OR_RETURN(
      const Weight projection,
      weights.DenseAtLoad(name, model.model_dim, attention.kv_heads * attention.key_dim)
  );
  return DistanceKeys::Create(ops, projection, attention.kv_heads, model.context_tokens);
}

StatusOr<MoaWeights> LayerLoader::MoaMatrices(
    WeightLayout layout, const std::string& query, const std::string& output
) const {
  const AttentionConfig& config = model.attention;
  const ExpertStackShape query_shape = {
      .experts = config.router.experts,
      .active_experts = config.router.top_k,
      .in_features = model.model_dim,
      .out_features = config.kv_heads * config.key_dim,
  };
  const ExpertStackShape output_shape = {
      .experts = config.router.experts,
      .active_experts = config.router.top_k,
      .in_features = config.kv_heads * config.value_dim,
      .out_features = model.model_dim,
  };
  MoaWeights moa;
  ASSIGN_OR_RETURN(moa.query, weights.ExpertStack(query, layout, query_shape));
  ASSIGN_OR_RETURN(moa.output, weights.ExpertStack(output, layout, output_shape));
  return moa;
}

StatusOr<ExpertFeedForwardWeights> LayerLoader::ExpertMatrices(
    WeightLayout layout, const std::string& up, const std::string& down
) const {
  const FeedForwardConfig& config = model.feed_forward;
  const ExpertStackShape up_shape = {
      .experts = config.router.experts,
      .active_experts = config.router.top_k,
      .in_features = model.model_dim,
      .out_features = config.hidden_dim * (config.gated ? 2 : 1),
  };
  const ExpertStackShape down_shape = {
      .experts = config.router.experts,
      .active_experts = config.router.top_k,
      .in_features = config.hidden_dim,
      .out_features = model.model_dim,
  };
  ExpertFeedForwardWeights experts;
  ASSIGN_OR_RETURN(experts.up, weights.ExpertStack(up, layout, up_shape));
  ASSIGN_OR_RETURN(experts.down, weights.ExpertStack(down, layout, down_shape));
  return experts;
}

std::span<const Family> Families() {
  static const std::array kFamilies = {
      JetMoeFamily(),
      MoeutFamily(),
      MoeutTrainFamily(),
      MoaLmFamily(),
      SwitchHeadFamily(),
      ModuleFormerFamily()};
  return kFamilies;
}

StatusOr<const Family*> FindFamily(ConfigReader& config) {
  std::string known;
  for (const Family& family : Families()) {
    if (family.Recognizes(config)) {
      return &family;
    }
    known += (known.empty() ? "" : ", ") + std::string(family.name);
  }
  return InvalidArgument(
      config.path().string(),
      ": is of no known family (model_type \"",
      config.TextOr({"model_type"}, ""),
      "\"); known: ",
      known
  );
}

namespace {

constexpr int64_t kMaxElements =
    int64_t{1} << 40;  // of any one tensor; keeps every product of sizes in 64 bits

// Layers that are executed: shared ones cost a file nothing, but each has a cache and counters.
constexpr int64_t kMaxLayers = 10'000;

Status CheckRouter(const char* where, const RouterConfig& router) {
  if (router.top_k > router.experts) {
    return InvalidArgument(where, " picks ", router.top_k, " of only ", router.experts, " experts");
  }
  return OkStatus();
}

// Sizes that a family derives from others may come out as nothing.
Status CheckSizes(const ModelConfig& config) {
  const AttentionConfig& attention = config.attention;
  const std::pair<const char*, int64_t> sizes[] = {
      {"the model's width", config.model_dim},
      {"the number of layers", config.layers},
      {"the context", config.context_tokens},
      {"the number of kv heads", attention.kv_heads},
      {"the width of a key", attention.key_dim},
      {"the width of a value", attention.value_dim},
      {"the hidden width of the feed-forward", config.feed_forward.hidden_dim},
  };
  for (const auto& [name, size] : sizes) {
    if (size < 1) {
      return InvalidArgument(name, " comes out as ", size, "; it must be at least 1");
    }
  }
  if (config.layers > kMaxLayers) {
    return InvalidArgument("it has ", config.layers, " layers; at most ", kMaxLayers, " can run");
  }
  return OkStatus();
}

// What would turn every logit into a NaN, or every one into the same.
Status CheckNumbers(const ModelConfig& config) {
  for (const float epsilon : {config.norm.block_epsilon, config.norm.final_epsilon}) {
    if (!(epsilon >= 0 && std::isfinite(epsilon))) {
      return InvalidArgument("the epsilon of a norm is ", epsilon, "; expected a finite one >= 0");
    }
  }
  const AttentionConfig& attention = config.attention;
  if (attention.positions == PositionKind::kRotary &&
      !(attention.rotary_base > 0 && std::isfinite(attention.rotary_base))) {
    return InvalidArgument("the rotary base is ", attention.rotary_base, "; expected one above 0");
  }
  if (!std::isfinite(config.embedding_scale)) {
    return InvalidArgument("the scale of the embedding is ", config.embedding_scale);
  }
  return OkStatus();
}

}  // namespace

Status CheckConfig(const ModelConfig& config) {
  const AttentionConfig& attention = config.attention;
  RETURN_IF_ERROR(CheckSizes(config));
  RETURN_IF_ERROR(CheckNumbers(config));
  RETURN_IF_ERROR(CheckRouter("the attention router", attention.router));
  if (config.feed_forward.kind == FeedForwardKind::kExperts) {
    RETURN_IF_ERROR(CheckRouter("the feed-forward router", config.feed_forward.router));
  }
  if (attention.rotary_dims % 2 != 0) {
    return InvalidArgument(
        "rotary width is ", attention.rotary_dims, "; it must be even: channels turn in pairs"
    );
  }
  const double widest = static_cast<double>(attention.kv_heads) *
                        static_cast<double>(attention.key_dim + attention.value_dim) *
                        static_cast<double>(attention.router.experts) *
                        static_cast<double>(config.model_dim);
  const double hidden = static_cast<double>(config.feed_forward.hidden_dim) *
                        static_cast<double>(config.feed_forward.router.experts + 1) *
                        static_cast<double>(config.model_dim) * 2;
  if (widest > static_cast<double>(kMaxElements) || hidden > static_cast<double>(kMaxElements)) {
    return InvalidArgument(
        "its sizes multiply to a tensor of more than ", kMaxElements, " elements"
    );
  }
  return OkStatus();
}

}  // namespace switchyard
