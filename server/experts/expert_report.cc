#include "server/experts/expert_report.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/check.h"
#include "engine/expert_drift.h"
#include "engine/router_figures.h"
#include "server/validation/field_violation.h"

namespace switchyard {
namespace {

StatusOr<Phase> PhaseOf(const std::string& field, int phase) {
  switch (phase) {
    case v1::PHASE_PREFILL:
      return Phase::kPrefill;
    case v1::PHASE_DECODE:
      return Phase::kDecode;
    case v1::PHASE_RECOMPUTE:
      return Phase::kRecompute;
    case v1::PHASE_WARM_UP:
      return Phase::kWarmUp;
    default:
      return FieldViolation(
          field,
          Concat("is ", phase, ", which is no phase; use PREFILL, DECODE, RECOMPUTE or WARM_UP")
      );
  }
}

// A set: a phase that is named twice counts once.
StatusOr<std::set<Phase>> PhasesOf(const v1::GetExpertStatsRequest& request) {
  if (request.phases().empty()) {
    return std::set<Phase>{Phase::kPrefill, Phase::kDecode};
  }
  std::set<Phase> phases;
  for (int i = 0; i < request.phases_size(); ++i) {
    ASSIGN_OR_RETURN(const Phase phase, PhaseOf(Concat("phases[", i, "]"), request.phases(i)));
    phases.insert(phase);
  }
  return phases;
}

template <typename Values>
std::string Join(const Values& values) {
  std::string joined;
  for (const auto& value : values) {
    joined += joined.empty() ? Concat(value) : Concat(", ", value);
  }
  return joined;
}

Status CheckFilters(const ExpertStatistics& statistics, const v1::GetExpertStatsRequest& request) {
  std::set<int64_t> layers;
  std::set<std::string> kinds;
  for (const RouterStatistics& router : statistics.routers) {
    layers.insert(router.layer);
    kinds.insert(NameOf(router.kind));
  }
  for (int i = 0; i < request.layers_size(); ++i) {
    if (layers.count(request.layers(i)) == 0) {
      return FieldViolation(
          Concat("layers[", i, "]"),
          Concat("is ", request.layers(i), "; this model's layers with routers are ", Join(layers))
      );
    }
  }
  for (int i = 0; i < request.kinds_size(); ++i) {
    if (kinds.count(request.kinds(i)) == 0) {
      return FieldViolation(
          Concat("kinds[", i, "]"),
          Concat("is \"", request.kinds(i), "\"; this model's kinds of routers are ", Join(kinds))
      );
    }
  }
  return OkStatus();
}

template <typename Values, typename Value>
bool IsAsked(const Values& filter, const Value& value) {
  return filter.empty() || std::find(filter.begin(), filter.end(), value) != filter.end();
}

v1::RouterFigures Describe(const RouterFigures& figures) {
  v1::RouterFigures described;
  described.set_load_variation(figures.load_variation);
  described.set_effective_experts(figures.effective_experts);
  described.set_dead_share(figures.dead_share);
  described.set_max_over_mean(figures.max_over_mean);
  if (figures.margin.has_value()) {
    described.set_margin(*figures.margin);
  }
  if (figures.drift.has_value()) {
    described.set_drift(*figures.drift);
  }
  return described;
}

// What a router did in the asked phases, by head and expert.
struct Work {
  std::vector<int64_t> loads;
  std::vector<double> margins;  // sums; empty when there is nothing to leave out
};

// Of one head, whose columns begin at `begin`. Absent when it routed nothing.
std::optional<RouterFigures> FiguresOfHead(
    const RouterStatistics& router, const Work& work, const RouterBaseline* baseline, size_t begin
) {
  const auto experts = static_cast<size_t>(router.experts);
  const std::span<const int64_t> loads = std::span(work.loads).subspan(begin, experts);
  std::optional<RouterFigures> figures = FiguresOf(loads);
  if (!figures.has_value()) {
    return figures;
  }
  if (!work.margins.empty()) {
    const std::span<const double> margins = std::span(work.margins).subspan(begin, experts);
    const int64_t total = std::accumulate(loads.begin(), loads.end(), int64_t{0});
    figures->margin = std::accumulate(margins.begin(), margins.end(), 0.0) *
                      static_cast<double>(router.top_k) / static_cast<double>(total);
  }
  if (baseline != nullptr) {
    figures->drift =
        JensenShannonDivergence(loads, std::span(baseline->loads).subspan(begin, experts));
  }
  return figures;
}

void AddFigures(
    const RouterStatistics& router,
    const Work& work,
    const RouterBaseline* baseline,
    v1::RouterStats& out
) {
  const auto experts = static_cast<size_t>(router.experts);
  std::vector<std::optional<RouterFigures>> heads;
  for (int32_t head = 0; head < out.heads(); ++head) {
    const size_t begin = static_cast<size_t>(head) * experts;
    heads.push_back(FiguresOfHead(router, work, baseline, begin));
    if (!heads.back().has_value()) {
      continue;
    }
    const std::span<const int64_t> loads = std::span(work.loads).subspan(begin, experts);
    const int64_t total = std::accumulate(loads.begin(), loads.end(), int64_t{0});
    for (size_t expert = 0; expert < experts; ++expert) {
      out.mutable_stats(static_cast<int>(begin + expert))
          ->set_utilization(Utilization(loads[expert], total, out.experts()));
    }
    if (out.heads() > 1) {
      v1::HeadFigures& described = *out.add_head_figures();
      described.set_head(head);
      *described.mutable_figures() = Describe(*heads.back());
    }
  }
  if (const std::optional<RouterFigures> combined = Combined(heads)) {
    *out.mutable_figures() = Describe(*combined);
  }
}

void AddRouter(
    const RouterStatistics& router,
    const std::set<Phase>& phases,
    const RouterBaseline* baseline,
    v1::RouterStats& out
) {
  out.set_layer(static_cast<int32_t>(router.layer));
  out.set_kind(NameOf(router.kind));
  out.set_heads(static_cast<int32_t>(router.heads));
  out.set_experts(static_cast<int32_t>(router.experts));
  out.set_top_k(static_cast<int32_t>(router.top_k));

  const int64_t columns = router.heads * router.experts;
  const bool leaves_out = router.top_k < router.experts && !router.margin_sum.empty();
  Work work;
  for (int64_t column = 0; column < columns; ++column) {
    v1::ExpertStats* const expert = out.add_stats();
    expert->set_head(static_cast<int32_t>(column / router.experts));
    expert->set_expert(static_cast<int32_t>(column % router.experts));
    int64_t tokens = 0;
    double gate_sum = 0;
    double margin_sum = 0;
    for (const Phase phase : phases) {
      const auto index = static_cast<size_t>(static_cast<int64_t>(phase) * columns + column);
      tokens += router.tokens[index];
      gate_sum += router.gate_sum[index];
      margin_sum += leaves_out ? router.margin_sum[index] : 0;
    }
    expert->set_tokens(tokens);
    expert->set_gate_weight_sum(gate_sum);
    work.loads.push_back(tokens);
    if (leaves_out) {
      work.margins.push_back(margin_sum);
    }
  }
  // Every token is assigned top_k experts of each head.
  const int64_t assignments = std::accumulate(work.loads.begin(), work.loads.end(), int64_t{0});
  out.set_tokens_routed(assignments / (router.top_k * router.heads));
  AddFigures(router, work, baseline, out);
}

}  // namespace

StatusOr<v1::GetExpertStatsResponse> SelectExpertStats(
    const ExpertStatistics& statistics,
    const v1::GetExpertStatsRequest& request,
    const ExpertBaseline* baseline
) {
  CHECK(baseline == nullptr || baseline->routers.size() >= statistics.routers.size())
      << "a baseline of " << (baseline == nullptr ? 0 : baseline->routers.size()) << " routers";
  ASSIGN_OR_RETURN(const std::set<Phase> phases, PhasesOf(request));
  RETURN_IF_ERROR(CheckFilters(statistics, request));
  v1::GetExpertStatsResponse response;
  response.set_uptime_seconds(statistics.uptime_seconds);
  for (size_t i = 0; i < statistics.routers.size(); ++i) {
    const RouterStatistics& router = statistics.routers[i];
    if (IsAsked(request.layers(), router.layer) && IsAsked(request.kinds(), NameOf(router.kind))) {
      const RouterBaseline* const kept = baseline == nullptr ? nullptr : &baseline->routers[i];
      AddRouter(router, phases, kept, *response.add_routers());
    }
  }
  return response;
}

}  // namespace switchyard
