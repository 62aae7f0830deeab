#include "base/histogram.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <thread>
#include <vector>

namespace switchyard {
namespace {

using ::testing::ElementsAre;

constexpr std::array kBounds = {1.0, 2.5, 4.0};

TEST(Histogram, PutsABoundIntoItsOwnBucketAndTheRestIntoTheLast) {
  Histogram histogram(kBounds);

  for (const double value : {0.0, 1.0, 1.5, 2.5, 2.75, 4.5, 100.0}) {
    histogram.Observe(value);
  }

  const HistogramSnapshot snapshot = histogram.Snapshot();
  EXPECT_THAT(snapshot.counts, ElementsAre(2, 2, 1, 2));
  EXPECT_EQ(snapshot.sum, 112.25);
}

TEST(Histogram, LosesNothingOfSeveralThreads) {
  Histogram histogram(kBounds);

  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&histogram] {
      for (int j = 0; j < 1001; ++j) {
        histogram.Observe(2);
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }

  EXPECT_THAT(histogram.Snapshot().counts, ElementsAre(0, 3003, 0, 0));
  EXPECT_EQ(histogram.Snapshot().sum, 6006);
}

}  // namespace
}  // namespace switchyard
