#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

namespace switchyard {

struct HistogramSnapshot {
  std::span<const double> upper_bounds;
  std::vector<int64_t> counts;  // values up to each bound and above the one before; then the rest
  double sum = 0;               // of all values
};

// How many values fell between which bounds. Thread-safe without a lock: an observation is two
// relaxed additions, so that the engine thread can afford one for each token.
class Histogram {
 public:
  // `upper_bounds` ascend, belong to their bucket, and must outlive this.
  explicit Histogram(std::span<const double> upper_bounds);

  void Observe(double value);

  // May miss values that are being observed meanwhile.
  HistogramSnapshot Snapshot() const;

 private:
  const std::span<const double> upper_bounds_;
  std::vector<std::atomic<int64_t>> counts_;
  std::atomic<double> sum_ = 0;
};

}  // namespace switchyard
