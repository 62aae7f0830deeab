#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

namespace switchyard {

// Durations in buckets of a thousandth of their size: however many there are, they take at most
// some hundred kilobytes. Count, mean, least and longest are exact; a percentile below 2048
// nanoseconds too, and above it is off by at most 0.05 %. Thread-compatible.
class LatencyHistogram {
 public:
  // `count` times. Negative durations count as 0.
  void Record(std::chrono::nanoseconds duration, int64_t count = 1);

  int64_t count() const { return count_; }
  // These are 0 when nothing was recorded.
  double MeanSeconds() const;
  double MaxSeconds() const;
  // The shortest recorded duration that at least `percent` of all do not exceed. `percent` is in
  // (0, 100].
  double PercentileSeconds(double percent) const;

 private:
  std::vector<int64_t> buckets_;
  int64_t count_ = 0;
  double sum_ns_ = 0;
  int64_t least_ns_ = 0;
  int64_t longest_ns_ = 0;
};

}  // namespace switchyard
