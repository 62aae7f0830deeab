#include "tests/benchmarks/read_bandwidth.h"

#include <atomic>

#include "tests/benchmarks/timing.h"

namespace switchyard {
namespace {

constexpr int64_t kBytesPerTask = int64_t{1} << 20;

// Several sums, so that the additions never wait for each other.
uint64_t SumOf(const uint64_t* words, int64_t count) {
  constexpr int64_t kSums = 16;
  uint64_t sums[kSums] = {};
  for (int64_t i = 0; i + kSums <= count; i += kSums) {
    for (int64_t s = 0; s < kSums; ++s) {
      sums[s] += words[i + s];
    }
  }
  uint64_t total = 0;
  for (const uint64_t sum : sums) {
    total += sum;
  }
  return total;
}

}  // namespace

double ReadBandwidth(ThreadPool& pool, const void* data, int64_t bytes, int repeats) {
  std::atomic<uint64_t> total{0};
  const double seconds = MedianSeconds(repeats, [&] {
    pool.ParallelFor(bytes, kBytesPerTask, [&](int64_t begin, int64_t end, int) {
      const auto words = reinterpret_cast<const uint64_t*>(static_cast<const char*>(data) + begin);
      total.fetch_add(
          SumOf(words, (end - begin) / static_cast<int64_t>(sizeof(uint64_t))),
          std::memory_order_relaxed
      );
    });
  });
  return static_cast<double>(bytes) / seconds;
}

}  // namespace switchyard
