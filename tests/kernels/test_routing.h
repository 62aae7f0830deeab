#pragma once

#include <cstdint>
#include <vector>

#include "kernels/ops.h"
#include "tests/support/ops_memory.h"

namespace switchyard {

// A routing as plain numbers.
struct TestRouting {
  int64_t tokens = 0;
  int64_t groups = 1;
  int64_t top_k = 1;
  int32_t experts = 1;  // of one group
  std::vector<int32_t> ids = {};
  std::vector<float> gates = {};
};

// Distinct experts in each group. Expert 1 of each group gets no token, and one slot in about ten
// is unused.
TestRouting RandomRouting(int64_t tokens, int64_t groups, int64_t top_k, int32_t experts);
// The same routing for only these tokens, in this order.
TestRouting RowsOf(const TestRouting& routing, const std::vector<int64_t>& tokens);

// Uploads the routing and groups it with the verb.
GroupedRouting Grouped(Ops& ops, OpsMemory& memory, const TestRouting& routing);

}  // namespace switchyard
