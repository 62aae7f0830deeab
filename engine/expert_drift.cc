#include "engine/expert_drift.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/check.h"

namespace switchyard {
namespace {

double SumOf(std::span<const int64_t> loads) {
  return std::accumulate(loads.begin(), loads.end(), 0.0, [](double sum, int64_t load) {
    return sum + static_cast<double>(load);
  });
}

// One term of a Kullback-Leibler divergence; nothing where there is no load.
double Term(double share, double mean) {
  return share > 0 ? share * std::log2(share / mean) : 0;
}

}  // namespace

std::optional<double> JensenShannonDivergence(
    std::span<const int64_t> a, std::span<const int64_t> b
) {
  CHECK(a.size() == b.size()) << a.size() << " and " << b.size() << " experts";
  const double sum_a = SumOf(a);
  const double sum_b = SumOf(b);
  if (sum_a <= 0 || sum_b <= 0) {
    return std::nullopt;
  }
  double divergence = 0;
  for (size_t expert = 0; expert < a.size(); ++expert) {
    const double share_a = static_cast<double>(a[expert]) / sum_a;
    const double share_b = static_cast<double>(b[expert]) / sum_b;
    const double mean = (share_a + share_b) / 2;
    divergence += (Term(share_a, mean) + Term(share_b, mean)) / 2;
  }
  // Rounding may leave the range by a few units of the last place.
  return std::clamp(divergence, 0.0, 1.0);
}

}  // namespace switchyard
