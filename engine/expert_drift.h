#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace switchyard {

// How differently work is spread over experts: the Jensen-Shannon divergence of the distributions
// p = a / sum(a) and q = b / sum(b) with logarithms to base 2,
//   (KL(p || m) + KL(q || m)) / 2,  m = (p + q) / 2.
// 0: the same shares; 1: no expert in common. Absent when either has no work. Requires: equal
// sizes, no negative loads.
std::optional<double> JensenShannonDivergence(
    std::span<const int64_t> a, std::span<const int64_t> b
);

}  // namespace switchyard
