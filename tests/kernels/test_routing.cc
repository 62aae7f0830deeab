#include "tests/kernels/test_routing.h"

#include "kernels/random.h"

namespace switchyard {
namespace {

constexpr uint64_t kSeed = 99;
constexpr int32_t kEmptyExpert = 1;

}  // namespace

TestRouting RandomRouting(int64_t tokens, int64_t groups, int64_t top_k, int32_t experts) {
  TestRouting routing = {.tokens = tokens, .groups = groups, .top_k = top_k, .experts = experts};
  for (int64_t row = 0; row < tokens * groups; ++row) {
    // Walking round the experts from a random one keeps them distinct while top_k < experts.
    auto next = static_cast<int32_t>(experts * UniformDraw(kSeed, static_cast<uint64_t>(row)));
    for (int64_t slot = 0; slot < top_k; ++slot) {
      next = next % experts == kEmptyExpert ? next + 1 : next;
      const auto place = static_cast<uint64_t>(row * top_k + slot);
      const bool used = UniformDraw(kSeed + 1, place) > 0.1;
      routing.ids.push_back(used ? next % experts : -1);
      const auto gate = static_cast<float>(UniformDraw(kSeed + 2, place));
      routing.gates.push_back(used ? gate : 0);
      ++next;
    }
  }
  return routing;
}

TestRouting RowsOf(const TestRouting& routing, const std::vector<int64_t>& tokens) {
  TestRouting rows = routing;
  rows.tokens = static_cast<int64_t>(tokens.size());
  rows.ids.clear();
  rows.gates.clear();
  const int64_t width = routing.groups * routing.top_k;
  for (const int64_t token : tokens) {
    for (int64_t i = token * width; i < (token + 1) * width; ++i) {
      rows.ids.push_back(routing.ids[static_cast<size_t>(i)]);
      rows.gates.push_back(routing.gates[static_cast<size_t>(i)]);
    }
  }
  return rows;
}

GroupedRouting Grouped(Ops& ops, OpsMemory& memory, const TestRouting& routing) {
  const int64_t tokens = routing.tokens;
  const int64_t groups = routing.groups;
  const int64_t top_k = routing.top_k;
  const GroupedRouting grouped = {
      .routing =
          {
              .expert_ids = memory.Ints({tokens, groups, top_k}, routing.ids),
              .gates = memory.Floats({tokens, groups, top_k}, routing.gates),
              .experts = routing.experts,
          },
      .order = memory.Zeros(DType::kI32, {tokens * groups * top_k}),
      .offsets = memory.Zeros(DType::kI32, {groups * routing.experts + 1}),
  };
  ops.GroupByExpert(TensorView(), RouterCounters(), grouped);
  return grouped;
}

}  // namespace switchyard
