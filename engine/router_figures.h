#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace switchyard {

// How evenly a router spreads its work over N experts with loads t_1 .. t_N of mean m.
struct RouterFigures {
  double load_variation = 0;     // coefficient of variation: sqrt(mean((t - m)^2)) / m; 0: even
  double effective_experts = 0;  // exp(entropy of t / sum(t)): 1 .. N; N: even
  double dead_share = 0;         // experts with t = 0, as a share of N
  double max_over_mean = 0;      // max(t) / m; 1: even
  // What does not follow from the loads, where it is known: the mean margin of a token's choice,
  // and the distance from a baseline (engine/expert_drift.h).
  std::optional<double> margin = {};
  std::optional<double> drift = {};
};

// Load over ideal load, t / m, of one expert: 1 is fair, 0 dead. Requires: total > 0.
double Utilization(int64_t load, int64_t total, int64_t experts);

// Absent when nothing was routed: a router without work is not an even one.
std::optional<RouterFigures> FiguresOf(std::span<const int64_t> loads);

// Of several routers side by side, the heads of a layer: the mean variation, effective experts,
// margin and drift of those that routed anything, the dead share of all their experts, and the
// greatest max over mean. `heads` have the same number of experts; absent when none routed
// anything.
std::optional<RouterFigures> Combined(const std::vector<std::optional<RouterFigures>>& heads);

}  // namespace switchyard
