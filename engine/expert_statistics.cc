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

std::vector<double> DownloadedSums(Ops& ops, TensorView counters, double unit) {
  const std::vector<int64_t> units = Downloaded(ops, counters);
  std::vector<double> sums(units.size());
  std::transform(units.begin(), units.end(), sums.begin(), [unit](int64_t count) {
    return static_cast<double>(count) * unit;
  });
  return sums;
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
  statistics.gate_sum = DownloadedSums(ops, router.counters().gate_sum, kGateSumUnit);
  statistics.margin_sum = DownloadedSums(ops, router.counters().margin_sum, kMarginSumUnit);
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
