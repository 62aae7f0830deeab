#include "engine/model/families/switch_head_loading.h"

#include <utility>

namespace switchyard {
namespace {

constexpr std::array kAllProjections = {
    Projection::kQuery, Projection::kKey, Projection::kValue, Projection::kOutput};
constexpr std::array kRouterKinds = {
    RouterKind::kAttentionQuery,
    RouterKind::kAttentionKey,
    RouterKind::kAttentionValue,
    RouterKind::kAttentionOutput,
};

size_t IndexOf(Projection projection) {
  return static_cast<size_t>(projection);
}

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

// Whose router a routed projection asks; the sharing rule of the training code.
Projection RouterOwner(const AttentionConfig& config, Projection projection) {
  switch (projection) {
    case Projection::kOutput:
      return Projection::kOutput;
    case Projection::kQuery:
      return config.query_and_key_have_routers ? Projection::kQuery : Projection::kOutput;
    case Projection::kKey:
      if (config.query_and_key_have_routers) {
        return config.value_has_router ? Projection::kKey : Projection::kQuery;
      }
      break;
    case Projection::kValue:
      break;
  }
  return config.value_has_router ? Projection::kValue : Projection::kOutput;
}

}  // namespace

StatusOr<Weight> LoadProjection(
    const LayerLoader& loader, const SwitchHeadNames& names, Projection projection
) {
  const AttentionConfig& config = loader.model.attention;
  const bool is_output = projection == Projection::kOutput;
  const bool is_value_side = is_output || projection == Projection::kValue;
  const int64_t head_dim = is_value_side ? config.value_dim : config.key_dim;
  const int64_t model_dim = loader.model.model_dim;
  const std::string& name = names.projections[IndexOf(projection)];
  if (IsRouted(config, projection)) {
    const ExpertStackShape shape = {
        .experts = config.kv_heads * config.router.experts,
        .active_experts = config.kv_heads * config.router.top_k,
        .in_features = is_output ? head_dim : model_dim,
        .out_features = is_output ? model_dim : head_dim,
    };
    return loader.weights.ExpertStack(name, WeightLayout::kInOut, shape);
  }
  const int64_t width = config.kv_heads * head_dim;
  return loader.weights.Dense(
      name, WeightLayout::kOutIn, is_output ? width : model_dim, is_output ? model_dim : width
  );
}

StatusOr<std::vector<SwitchHeadRouter>> LoadRouters(
    const LayerLoader& loader, const SwitchHeadNames& names
) {
  std::array<std::vector<Projection>, kProjections> users;  // by owner
  for (const Projection projection : kAllProjections) {
    if (IsRouted(loader.model.attention, projection)) {
      const Projection owner = RouterOwner(loader.model.attention, projection);
      users[IndexOf(owner)].push_back(projection);
    }
  }
  std::vector<SwitchHeadRouter> routers;
  for (const Projection owner : kAllProjections) {
    const size_t index = IndexOf(owner);
    if (users[index].empty()) {
      continue;
    }
    SwitchHeadRouter router;
    router.projections = users[index];
    ASSIGN_OR_RETURN(
        router.router,
        loader.LinearRouter(
            loader.model.attention.router, kRouterKinds[index], names.selections[index]
        )
    );
    routers.push_back(std::move(router));
  }
  return routers;
}

StatusOr<std::unique_ptr<Attention>> LoadSwitchHeadAttention(
    const LayerLoader& loader, const SwitchHeadNames& names
) {
  SwitchHeadWeights weights;
  for (const Projection projection : kAllProjections) {
    ASSIGN_OR_RETURN(
        weights.projections[IndexOf(projection)], LoadProjection(loader, names, projection)
    );
  }
  ASSIGN_OR_RETURN(std::vector<SwitchHeadRouter> routers, LoadRouters(loader, names));
  ASSIGN_OR_RETURN(
      std::unique_ptr<DistanceKeys> distance_keys,
      loader.LoadDistanceKeys(names.distance_projection)
  );
  return std::make_unique<SwitchHeadAttention>(
      loader.ops, loader.model.attention, std::move(routers), weights, std::move(distance_keys)
  );
}

}  // namespace switchyard
