#pragma once

#include <cstdint>
#include <vector>

#include "kernels/ops.h"

namespace switchyard {

// A routing of one group in which all experts get equally many tokens.
class BalancedRouting {
 public:
  BalancedRouting(Ops& ops, int64_t tokens, int64_t top_k, int64_t experts);
  BalancedRouting(const BalancedRouting&) = delete;
  BalancedRouting& operator=(const BalancedRouting&) = delete;

  // Valid as long as this object.
  const GroupedRouting& grouped() const { return grouped_; }

 private:
  std::vector<int32_t> ids_;
  std::vector<float> gates_;
  std::vector<int32_t> order_;
  std::vector<int32_t> offsets_;
  GroupedRouting grouped_;
};

}  // namespace switchyard
