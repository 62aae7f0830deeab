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

// Whose router a routed projection uses.
StatusOr<Projection> RouterOwner(
    const WeightLoader& weights, const SwitchHeadNames& names, Projection projection
) {
  const auto has = [&](Projection owner) { return weights.Has(names.selections[IndexOf(owner)]); };
  std::vector<Projection> candidates = {projection};
  if (projection == Projection::kKey) {
    candidates.push_back(Projection::kValue);
    candidates.push_back(Projection::kQuery);
  }
  candidates.push_back(Projection::kOutput);
  for (const Projection candidate : candidates) {
    if (has(candidate)) {
      return candidate;
    }
  }
  return DataLoss(
      "tensor ",
      names.selections[IndexOf(projection)],
      " is missing, and there is no other router that could stand in for it"
  );
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
      ASSIGN_OR_RETURN(const Projection owner, RouterOwner(loader.weights, names, projection));
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
