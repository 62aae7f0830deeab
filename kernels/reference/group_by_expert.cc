#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "kernels/check_shape.h"
#include "kernels/reference/reference_ops.h"

namespace switchyard {
namespace {

struct RoutingSizes {
  int64_t tokens = 0;
  int64_t groups = 0;
  int64_t top_k = 0;
  int64_t experts = 0;  // of all groups together
};

// The expert of an assignment among those of all groups; -1 for an unused slot.
int64_t ExpertOf(const Routing& routing, const RoutingSizes& sizes, int64_t assignment) {
  const int32_t id = routing.expert_ids.i32()[assignment];
  if (id < 0) {
    return -1;
  }
  const int64_t group = assignment / sizes.top_k % sizes.groups;
  return group * routing.experts + id;
}

RoutingSizes CheckedSizes(const GroupedRouting& grouped) {
  const Routing& routing = grouped.routing;
  CHECK(routing.expert_ids.rank() == 3) << "expert ids are " << routing.expert_ids.ToString();
  RoutingSizes sizes;
  sizes.tokens = routing.expert_ids.dim(0);
  sizes.groups = routing.expert_ids.dim(1);
  sizes.top_k = routing.expert_ids.dim(2);
  sizes.experts = sizes.groups * routing.experts;
  const int64_t assignments = routing.expert_ids.elements();
  CheckShape("gates", routing.gates, DType::kF32, {sizes.tokens, sizes.groups, sizes.top_k});
  CheckElements("order", grouped.order, DType::kI32, assignments);
  CheckElements("offsets", grouped.offsets, DType::kI32, sizes.experts + 1);
  for (int64_t a = 0; a < assignments; ++a) {
    const int32_t id = routing.expert_ids.i32()[a];
    CHECK(id >= -1 && id < routing.experts)
        << "expert id " << id << " in assignment " << a << " of " << routing.experts << " experts";
  }
  return sizes;
}

int64_t MarginUnits(float margin) {
  return std::isfinite(margin) ? std::llround(std::min(margin, kLargestMargin) / kMarginSumUnit)
                               : 0;
}

void Count(
    const RoutingSizes& sizes,
    const Routing& routing,
    TensorView phases,
    const RouterCounters& counters
) {
  CheckElements("phases", phases, DType::kI32, sizes.tokens);
  CheckShape("counters.tokens", counters.tokens, DType::kI64, {kPhases, sizes.experts});
  CheckShape("counters.gate_sum", counters.gate_sum, DType::kI64, {kPhases, sizes.experts});
  const bool counts_margins = counters.margin_sum.exists();
  if (counts_margins) {
    CheckShape("margins", routing.margins, DType::kF32, {sizes.tokens, sizes.groups});
    CheckShape("counters.margin_sum", counters.margin_sum, DType::kI64, {kPhases, sizes.experts});
  }
  for (int64_t a = 0; a < routing.expert_ids.elements(); ++a) {
    const int64_t expert = ExpertOf(routing, sizes, a);
    if (expert < 0) {
      continue;
    }
    const int32_t phase = phases.i32()[a / (sizes.groups * sizes.top_k)];
    CHECK(phase >= 0 && phase < kPhases) << "phase " << phase;
    const int64_t cell = phase * sizes.experts + expert;
    const float gate = routing.gates.f32()[a];
    counters.tokens.i64()[cell] += 1;
    // A NaN gate means that the row is lost; SelectTokens reports it. The sum must stay a sum.
    counters.gate_sum.i64()[cell] += std::isfinite(gate) ? std::llround(gate / kGateSumUnit) : 0;
    if (counts_margins && a % sizes.top_k == 0) {
      counters.margin_sum.i64()[cell] += MarginUnits(routing.margins.f32()[a / sizes.top_k]);
    }
  }
}

}  // namespace

void ReferenceOps::GroupByExpert(
    TensorView phases, const RouterCounters& counters, const GroupedRouting& out
) {
  const RoutingSizes sizes = CheckedSizes(out);
  const int64_t assignments = out.routing.expert_ids.elements();
  int32_t* order = out.order.i32();
  int32_t* offsets = out.offsets.i32();

  // A counting sort: offsets[e + 1] first holds the number of e's assignments, then their running
  // sum is the place where e + 1 begins.
  std::fill(offsets, offsets + sizes.experts + 1, 0);
  std::fill(order, order + assignments, -1);
  for (int64_t a = 0; a < assignments; ++a) {
    const int64_t expert = ExpertOf(out.routing, sizes, a);
    if (expert >= 0) {
      ++offsets[expert + 1];
    }
  }
  for (int64_t e = 0; e < sizes.experts; ++e) {
    offsets[e + 1] += offsets[e];
  }
  for (int64_t a = 0; a < assignments; ++a) {
    const int64_t expert = ExpertOf(out.routing, sizes, a);
    if (expert >= 0) {
      order[offsets[expert]++] = static_cast<int32_t>(a);
    }
  }
  // Each offset has moved on to the begin of the next expert: move them back by one.
  for (int64_t e = sizes.experts; e > 0; --e) {
    offsets[e] = offsets[e - 1];
  }
  offsets[0] = 0;

  if (counters.tokens.exists()) {
    Count(sizes, out.routing, phases, counters);
  }
}

}  // namespace switchyard
