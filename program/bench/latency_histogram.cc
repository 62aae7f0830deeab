#include "program/bench/latency_histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace switchyard {
namespace {

// Durations below 2^(kDigits + 1) ns have a bucket each; of every further doubling, 2^kDigits
// buckets.
constexpr int kDigits = 10;
constexpr double kNanosecondsPerSecond = 1e9;

size_t BucketOf(int64_t nanoseconds) {
  const auto value = static_cast<uint64_t>(nanoseconds);
  const int shift = std::max(0, static_cast<int>(std::bit_width(value)) - kDigits - 1);
  return (static_cast<size_t>(shift) << kDigits) + (value >> shift);
}

// The middle of the bucket.
int64_t ValueOf(size_t bucket) {
  const size_t doublings = bucket >> kDigits;
  if (doublings < 2) {
    return static_cast<int64_t>(bucket);
  }
  const size_t shift = doublings - 1;
  const size_t leading = bucket - (shift << kDigits);
  return static_cast<int64_t>((leading << shift) + (size_t{1} << shift) / 2);
}

}  // namespace

void LatencyHistogram::Record(std::chrono::nanoseconds duration, int64_t count) {
  if (count <= 0) {
    return;
  }
  const int64_t nanoseconds = std::max<int64_t>(0, duration.count());
  const size_t bucket = BucketOf(nanoseconds);
  if (bucket >= buckets_.size()) {
    buckets_.resize(bucket + 1);
  }
  buckets_[bucket] += count;
  least_ns_ = count_ == 0 ? nanoseconds : std::min(least_ns_, nanoseconds);
  longest_ns_ = std::max(longest_ns_, nanoseconds);
  count_ += count;
  sum_ns_ += static_cast<double>(nanoseconds) * static_cast<double>(count);
}

double LatencyHistogram::MeanSeconds() const {
  return count_ == 0 ? 0 : sum_ns_ / static_cast<double>(count_) / kNanosecondsPerSecond;
}

double LatencyHistogram::MaxSeconds() const {
  return static_cast<double>(longest_ns_) / kNanosecondsPerSecond;
}

double LatencyHistogram::PercentileSeconds(double percent) const {
  const auto rank = static_cast<int64_t>(std::ceil(percent / 100 * static_cast<double>(count_)));
  int64_t passed = 0;
  for (size_t bucket = 0; bucket < buckets_.size(); ++bucket) {
    passed += buckets_[bucket];
    if (passed >= rank && passed > 0) {
      const int64_t value = std::clamp(ValueOf(bucket), least_ns_, longest_ns_);
      return static_cast<double>(value) / kNanosecondsPerSecond;
    }
  }
  return 0;
}

}  // namespace switchyard
