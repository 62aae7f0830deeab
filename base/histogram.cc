#include "base/histogram.h"

#include <algorithm>
#include <cstddef>

namespace switchyard {

Histogram::Histogram(std::span<const double> upper_bounds)
    : upper_bounds_(upper_bounds), counts_(upper_bounds.size() + 1) {}

void Histogram::Observe(double value) {
  const auto bound = std::ranges::lower_bound(upper_bounds_, value);
  const auto bucket = static_cast<size_t>(bound - upper_bounds_.begin());
  counts_[bucket].fetch_add(1, std::memory_order_relaxed);
  sum_.fetch_add(value, std::memory_order_relaxed);
}

HistogramSnapshot Histogram::Snapshot() const {
  HistogramSnapshot snapshot{.upper_bounds = upper_bounds_, .counts = {}};
  snapshot.counts.reserve(counts_.size());
  for (const std::atomic<int64_t>& count : counts_) {
    snapshot.counts.push_back(count.load(std::memory_order_relaxed));
  }
  snapshot.sum = sum_.load(std::memory_order_relaxed);
  return snapshot;
}

}  // namespace switchyard
