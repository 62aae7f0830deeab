#include "tests/benchmarks/balanced_routing.h"

#include <algorithm>

#include "base/check.h"

namespace switchyard {

BalancedRouting::BalancedRouting(Ops& ops, const BalancedRoutingShape& shape)
    : touched_experts_(shape.groups * std::min(shape.experts, shape.tokens * shape.top_k)) {
  const int64_t assignments = shape.tokens * shape.groups * shape.top_k;
  std::vector<int32_t> ids(static_cast<size_t>(assignments));
  const std::vector<float> gates(ids.size(), 0.5F);
  const int64_t row = shape.groups * shape.top_k;
  for (int64_t a = 0; a < assignments; ++a) {
    const int64_t number = shape.first + a / row * shape.top_k + a % shape.top_k;
    ids[static_cast<size_t>(a)] = static_cast<int32_t>(number % shape.experts);
  }
  grouped_ = {
      .routing =
          {.expert_ids = Take(ops, DType::kI32, {shape.tokens, shape.groups, shape.top_k}),
           .gates = Take(ops, DType::kF32, {shape.tokens, shape.groups, shape.top_k}),
           .experts = static_cast<int32_t>(shape.experts),
           .margins = Take(ops, DType::kF32, {shape.tokens, shape.groups})},
      .order = Take(ops, DType::kI32, {assignments}),
      .offsets = Take(ops, DType::kI32, {shape.groups * shape.experts + 1}),
  };
  phases_ = Take(ops, DType::kI32, {shape.tokens});
  const Routing& routing = grouped_.routing;
  ops.Upload(ids.data(), routing.expert_ids.data(), routing.expert_ids.bytes());
  ops.Upload(gates.data(), routing.gates.data(), routing.gates.bytes());
  ops.GroupByExpert(phases_, {}, grouped_);
}

TensorView BalancedRouting::Take(Ops& ops, DType dtype, std::initializer_list<int64_t> shape) {
  StatusOr<std::unique_ptr<Buffer>> buffer =
      ops.Allocate(TensorView(nullptr, dtype, shape).bytes());
  CHECK(buffer.ok()) << MessageOf(buffer.status());
  memory_.push_back(*std::move(buffer));
  return TensorView(memory_.back()->data(), dtype, shape);
}

}  // namespace switchyard
