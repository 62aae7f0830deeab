#include "server/experts/expert_metrics.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <string>
#include <vector>

namespace switchyard {
namespace {

struct NamedPhase {
  v1::Phase phase;
  const char* name;
};
// Warm-up is left to gRPC: it never moves.
constexpr std::array<NamedPhase, 3> kRouterPhases = {
    {{v1::PHASE_PREFILL, "prefill"},
     {v1::PHASE_DECODE, "decode"},
     {v1::PHASE_RECOMPUTE, "recompute"}}};
constexpr size_t kExpertPhases = 2;  // of those, the ones that are told expert by expert

struct NamedWindow {
  v1::Window window;
  const char* name;
};
// Not ten seconds: it is shorter than a usual scrape interval.
constexpr std::array<NamedWindow, 3> kWindows = {
    {{v1::WINDOW_LIFE, "life"}, {v1::WINDOW_1_MINUTE, "1m"}, {v1::WINDOW_10_MINUTES, "10m"}}};

// What a router needs to have a figure at all, beside work.
enum class Needs : uint8_t { kNothing, kChoice, kBaseline };
struct NamedFigure {
  double (v1::RouterFigures::*value)() const;
  Needs needs;
  const char* name;
  const char* help;
};
constexpr std::array<NamedFigure, 6> kFigures = {
    {{&v1::RouterFigures::load_variation,
      Needs::kNothing,
      "expert_load_variation",
      "Coefficient of variation of the experts' loads; 0: even"},
     {&v1::RouterFigures::effective_experts,
      Needs::kNothing,
      "expert_effective_experts",
      "exp(entropy) of the experts' loads: 1 to the number of experts"},
     {&v1::RouterFigures::dead_share,
      Needs::kNothing,
      "expert_dead_ratio",
      "Share of the experts that got no token"},
     {&v1::RouterFigures::max_over_mean,
      Needs::kNothing,
      "expert_max_over_mean",
      "Greatest load of an expert over the mean load; 1: even"},
     {&v1::RouterFigures::margin,
      Needs::kChoice,
      "router_margin",
      "Mean of the lowest score that was chosen less the highest that was not"},
     {&v1::RouterFigures::drift,
      Needs::kBaseline,
      "expert_drift",
      "Jensen-Shannon divergence of the loads from the baseline; 0: the same, 1: disjoint"}}};

// One answer for each of kRouterPhases.
using AnswersByPhase = std::vector<v1::GetExpertStatsResponse>;

MetricLabels RouterLabels(const v1::RouterStats& router) {
  return {{"layer", std::to_string(router.layer())}, {"kind", router.kind()}};
}

MetricLabels With(MetricLabels labels, const std::string& name, const std::string& value) {
  labels.push_back({name, value});
  return labels;
}

bool IsThere(Needs needs, const v1::RouterFigures& figures) {
  switch (needs) {
    case Needs::kNothing:
      return true;
    case Needs::kChoice:
      return figures.has_margin();
    case Needs::kBaseline:
      return figures.has_drift();
  }
  return false;
}

bool CanBeThere(Needs needs, const v1::RouterInfo& router, bool has_baseline) {
  switch (needs) {
    case Needs::kNothing:
      return true;
    case Needs::kChoice:
      return router.top_k() < router.experts();
    case Needs::kBaseline:
      return has_baseline;
  }
  return false;
}

template <typename Value>
void AddExperts(const AnswersByPhase& by_phase, Value value, MetricFamilies& families) {
  for (size_t i = 0; i < kExpertPhases; ++i) {
    for (const v1::RouterStats& router : by_phase[i].routers()) {
      for (const v1::ExpertStats& expert : router.stats()) {
        MetricLabels labels = RouterLabels(router);
        labels.push_back({"head", std::to_string(expert.head())});
        labels.push_back({"expert", std::to_string(expert.expert())});
        labels.push_back({"phase", kRouterPhases[i].name});
        families.Add(value(expert), labels);
      }
    }
  }
}

void AddCounts(const AnswersByPhase& by_phase, ExpertMetricsLevel level, MetricFamilies& families) {
  families.Counter(
      "router_tokens_total", "Tokens that passed the router; assignments are top_k times as many"
  );
  for (size_t i = 0; i < kRouterPhases.size(); ++i) {
    for (const v1::RouterStats& router : by_phase[i].routers()) {
      families.Add(
          int64_t{router.tokens_routed()},
          With(RouterLabels(router), "phase", kRouterPhases[i].name)
      );
    }
  }
  if (level != ExpertMetricsLevel::kFull) {
    return;
  }
  families.Counter("expert_tokens_total", "Tokens that the router assigned to the expert");
  AddExperts(
      by_phase, [](const auto& expert) { return int64_t{expert.tokens()}; }, families
  );
  families.Counter("expert_gate_weight_total", "Sum of the gates of the expert's assignments");
  AddExperts(
      by_phase, [](const auto& expert) { return expert.gate_weight_sum(); }, families
  );
}

void AddFigures(
    const std::vector<v1::GetExpertStatsResponse>& by_window, MetricFamilies& families
) {
  for (const NamedFigure& figure : kFigures) {
    families.Gauge(figure.name, Concat(figure.help, ", over all heads of the layer"));
    for (size_t i = 0; i < kWindows.size(); ++i) {
      for (const v1::RouterStats& router : by_window[i].routers()) {
        if (router.has_figures() && IsThere(figure.needs, router.figures())) {
          families.Add(
              (router.figures().*figure.value)(),
              With(RouterLabels(router), "window", kWindows[i].name)
          );
        }
      }
    }
  }
}

}  // namespace

int64_t CountExpertSeries(const v1::GetModelInfoResponse& info, ExpertMetricsLevel level) {
  if (level == ExpertMetricsLevel::kOff) {
    return 0;
  }
  constexpr auto kPerExpert = static_cast<int64_t>(2 * kExpertPhases);
  int64_t series = 0;
  for (const v1::RouterInfo& router : info.routers()) {
    const int64_t figures = std::ranges::count_if(kFigures, [&](const NamedFigure& figure) {
      return CanBeThere(figure.needs, router, info.has_expert_baseline());
    });
    series += std::ssize(kRouterPhases) + std::ssize(kWindows) * figures;
    if (level == ExpertMetricsLevel::kFull) {
      series += kPerExpert * router.heads() * router.experts();
    }
  }
  return series;
}

Status CheckExpertSeries(
    const v1::GetModelInfoResponse& info, const ExpertMetricsOptions& options
) {
  const int64_t series = CountExpertSeries(info, options.level);
  if (options.max_series == 0 || series <= options.max_series) {
    return OkStatus();
  }
  return FailedPrecondition(
      "this model's routers make ",
      series,
      " Prometheus series, more than --max-expert-series ",
      options.max_series,
      "; lower --expert-metrics, or allow them"
  );
}

Status AddExpertMetrics(LoadedModel& model, ServingState& state, MetricFamilies& families) {
  const ExpertMetricsOptions& options = state.options().expert_metrics;
  if (options.level == ExpertMetricsLevel::kOff) {
    return OkStatus();
  }
  ASSIGN_OR_RETURN(
      const ExpertSnapshot latest,
      state.experts().Snapshot(*model.engine, {.timeout = kScrapeTimeout, .max_age = kScrapeMaxAge})
  );
  std::vector<v1::GetExpertStatsResponse> by_window;
  for (const NamedWindow& window : kWindows) {
    v1::GetExpertStatsRequest request;
    request.set_window(window.window);
    ASSIGN_OR_RETURN(by_window.emplace_back(), state.experts().Answer(*latest, request));
  }
  AnswersByPhase by_phase;
  for (const NamedPhase& phase : kRouterPhases) {
    v1::GetExpertStatsRequest request;
    request.add_phases(phase.phase);
    ASSIGN_OR_RETURN(by_phase.emplace_back(), state.experts().Answer(*latest, request));
  }
  AddCounts(by_phase, options.level, families);
  AddFigures(by_window, families);
  return OkStatus();
}

}  // namespace switchyard
