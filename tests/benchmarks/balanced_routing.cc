#include "tests/benchmarks/balanced_routing.h"

namespace switchyard {

BalancedRouting::BalancedRouting(Ops& ops, int64_t tokens, int64_t top_k, int64_t experts)
    : ids_(static_cast<size_t>(tokens * top_k)),
      gates_(ids_.size(), 0.5F),
      order_(ids_.size()),
      offsets_(static_cast<size_t>(experts) + 1) {
  for (size_t a = 0; a < ids_.size(); ++a) {
    ids_[a] = static_cast<int32_t>(a % static_cast<size_t>(experts));
  }
  grouped_ = {
      .routing =
          {.expert_ids = {ids_.data(), DType::kI32, {tokens, 1, top_k}},
           .gates = {gates_.data(), DType::kF32, {tokens, 1, top_k}},
           .experts = static_cast<int32_t>(experts)},
      .order = {order_.data(), DType::kI32, {tokens * top_k}},
      .offsets = {offsets_.data(), DType::kI32, {experts + 1}},
  };
  std::vector<int32_t> phases(static_cast<size_t>(tokens));
  ops.GroupByExpert({phases.data(), DType::kI32, {tokens}}, {}, grouped_);
}

}  // namespace switchyard
