#include "engine/expert_statistics.h"

#include <algorithm>

#include "engine/model/model.h"

namespace switchyard {
namespace {

std::vector<int64_t> Downloaded(Ops& ops, TensorView counters) {
  std::vector<int64_t> values(static_cast<size_t>(counters.elements()));
  ops.Download(counters.data(), values.data(), counters.bytes());
  return values;
}

RouterStatistics ReadRouter(Ops& ops, const Router& router) {
  const RouterConfig& config = router.config();
  RouterStatistics statistics;
  statistics.layer = router.layer();
  statistics.kind = router.kind();
  statistics.heads = config.groups;
  statistics.experts = config.experts;
  statistics.top_k = config.top_k;
  statistics.tokens = Downloaded(ops, router.counters().tokens);
  const std::vector<int64_t> gate_units = Downloaded(ops, router.counters().gate_sum);
  statistics.gate_sum.resize(gate_units.size());
  std::transform(
      gate_units.begin(),
      gate_units.end(),
      statistics.gate_sum.begin(),
      [](int64_t units) { return static_cast<double>(units) * kGateSumUnit; }
  );
  return statistics;
}

}  // namespace

std::vector<RouterStatistics> ReadRouterStatistics(const Model& model) {
  std::vector<RouterStatistics> routers;
  routers.reserve(model.routers().size());
  for (const Router* router : model.routers()) {
    routers.push_back(ReadRouter(model.ops(), *router));
  }
  return routers;
}

}  // namespace switchyard
