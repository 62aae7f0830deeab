#include "tests/server/two_routers.h"

namespace switchyard {

ExpertStatistics TwoRouters() {
  ExpertStatistics statistics;
  statistics.uptime_seconds = 12;
  statistics.routers.push_back(
      {.layer = 0,
       .kind = RouterKind::kAttention,
       .heads = 1,
       .experts = 2,
       .top_k = 1,
       .tokens = {3, 4, 10, 20, 0, 0, 1, 1},
       .gate_sum = {1.5, 2, 5, 10, 0, 0, 0.5, 0.5},
       .margin_sum = {1, 0.5, 4, 13, 0, 0, 9, 9}}
  );
  statistics.routers.push_back(
      {.layer = 1,
       .kind = RouterKind::kAttentionValue,
       .heads = 2,
       .experts = 2,
       .top_k = 1,
       .tokens = {7, 0, 2, 5, 30, 0, 10, 20, 0, 0, 0, 0, 2, 0, 0, 2},
       .gate_sum = std::vector<double>(16, 0.25),
       .margin_sum = {3.5, 0, 1, 6, 15, 0, 10, 20, 0, 0, 0, 0, 9, 0, 0, 9}}
  );
  return statistics;
}

v1::GetModelInfoResponse TwoRoutersInfo() {
  v1::GetModelInfoResponse info;
  for (const RouterStatistics& router : TwoRouters().routers) {
    v1::RouterInfo& described = *info.add_routers();
    described.set_layer(static_cast<int32_t>(router.layer));
    described.set_kind(NameOf(router.kind));
    described.set_heads(static_cast<int32_t>(router.heads));
    described.set_experts(static_cast<int32_t>(router.experts));
    described.set_top_k(static_cast<int32_t>(router.top_k));
  }
  return info;
}

}  // namespace switchyard
