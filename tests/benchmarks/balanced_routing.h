#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/ops.h"

namespace switchyard {

struct BalancedRoutingShape {
  int64_t tokens = 1;
  int64_t groups = 1;
  int64_t top_k = 1;
  int64_t experts = 1;  // of one group
  int64_t first = 0;    // the expert of each group that the first assignment goes to
};

// A routing in which all experts of a group get equally many tokens, in the memory of the backend.
class BalancedRouting {
 public:
  // `ops` must outlive this.
  BalancedRouting(Ops& ops, const BalancedRoutingShape& shape);
  BalancedRouting(const BalancedRouting&) = delete;
  BalancedRouting& operator=(const BalancedRouting&) = delete;

  // Valid as long as this object.
  const GroupedRouting& grouped() const { return grouped_; }
  // int32 [tokens], all of them prefill.
  TensorView phases() const { return phases_; }
  // Distinct experts that have tokens, of all groups.
  int64_t touched_experts() const { return touched_experts_; }

 private:
  TensorView Take(Ops& ops, DType dtype, std::initializer_list<int64_t> shape);

  std::vector<std::unique_ptr<Buffer>> memory_;
  GroupedRouting grouped_;
  TensorView phases_;
  int64_t touched_experts_ = 0;
};

}  // namespace switchyard
