#pragma once

#include <cstdint>
#include <vector>

#include "engine/model/forward_observer.h"
#include "kernels/ops.h"

namespace switchyard {

// Totals of one router at one moment, copied out of the backend.
struct RouterStatistics {
  int64_t layer = 0;
  RouterKind kind = RouterKind::kAttention;
  int64_t heads = 1;
  int64_t experts = 0;  // of each head
  int64_t top_k = 0;
  std::vector<int64_t> tokens;   // [phases, heads * experts]: assignments
  std::vector<double> gate_sum;  // as tokens
  // As tokens, but each token's margin is in the sum of the expert that was its first choice. Means
  // nothing when top_k is all experts.
  std::vector<double> margin_sum = {};
};

class Model;

// Copies the counters of every router, in executed order. Used only by the engine thread, between
// two steps.
std::vector<RouterStatistics> ReadRouterStatistics(const Model& model);

struct ExpertStatistics {
  std::vector<RouterStatistics> routers;  // executed order
  double uptime_seconds = 0;
};

}  // namespace switchyard
