#include "engine/router_figures.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace switchyard {
namespace {

// Of those heads that have the figure; absent when none has.
std::optional<double> MeanOf(
    const std::vector<std::optional<RouterFigures>>& heads,
    std::optional<double> RouterFigures::*figure
) {
  double sum = 0;
  double count = 0;
  for (const std::optional<RouterFigures>& head : heads) {
    if (head.has_value() && ((*head).*figure).has_value()) {
      sum += *((*head).*figure);
      count += 1;
    }
  }
  return count > 0 ? std::optional<double>(sum / count) : std::nullopt;
}

}  // namespace

double Utilization(int64_t load, int64_t total, int64_t experts) {
  return static_cast<double>(load) * static_cast<double>(experts) / static_cast<double>(total);
}

std::optional<RouterFigures> FiguresOf(std::span<const int64_t> loads) {
  const int64_t total = std::accumulate(loads.begin(), loads.end(), int64_t{0});
  if (total <= 0) {
    return std::nullopt;
  }
  const auto experts = static_cast<double>(loads.size());
  RouterFigures figures;
  double squares = 0;
  double entropy = 0;
  for (const int64_t load : loads) {
    const double utilization = Utilization(load, total, static_cast<int64_t>(loads.size()));
    squares += (utilization - 1) * (utilization - 1);
    figures.max_over_mean = std::max(figures.max_over_mean, utilization);
    if (load == 0) {
      figures.dead_share += 1 / experts;
      continue;
    }
    const double share = static_cast<double>(load) / static_cast<double>(total);
    entropy -= share * std::log(share);
  }
  figures.load_variation = std::sqrt(squares / experts);
  figures.effective_experts = std::exp(entropy);
  return figures;
}

std::optional<RouterFigures> Combined(const std::vector<std::optional<RouterFigures>>& heads) {
  RouterFigures combined;
  double working = 0;
  for (const std::optional<RouterFigures>& head : heads) {
    if (!head.has_value()) {
      combined.dead_share += 1;
      continue;
    }
    working += 1;
    combined.load_variation += head->load_variation;
    combined.effective_experts += head->effective_experts;
    combined.dead_share += head->dead_share;
    combined.max_over_mean = std::max(combined.max_over_mean, head->max_over_mean);
  }
  if (working == 0) {
    return std::nullopt;
  }
  combined.load_variation /= working;
  combined.effective_experts /= working;
  combined.dead_share /= static_cast<double>(heads.size());
  combined.margin = MeanOf(heads, &RouterFigures::margin);
  combined.drift = MeanOf(heads, &RouterFigures::drift);
  return combined;
}

}  // namespace switchyard
