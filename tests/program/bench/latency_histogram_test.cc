#include "program/bench/latency_histogram.h"

#include <gtest/gtest.h>

#include <initializer_list>

namespace switchyard {
namespace {

using std::chrono::nanoseconds;

LatencyHistogram Of(std::initializer_list<int64_t> all_ns) {
  LatencyHistogram histogram;
  for (const int64_t ns : all_ns) {
    histogram.Record(nanoseconds(ns));
  }
  return histogram;
}

TEST(LatencyHistogram, TakesTheNearestRank) {
  const LatencyHistogram histogram = Of({50, 10, 40, 20, 30});

  EXPECT_DOUBLE_EQ(histogram.PercentileSeconds(20), 10e-9);  // rank 1
  EXPECT_DOUBLE_EQ(histogram.PercentileSeconds(21), 20e-9);  // rank 1.05, so the second
  EXPECT_DOUBLE_EQ(histogram.PercentileSeconds(50), 30e-9);  // rank 2.5
  EXPECT_DOUBLE_EQ(histogram.PercentileSeconds(99), 50e-9);
  EXPECT_DOUBLE_EQ(histogram.PercentileSeconds(100), 50e-9);
}

TEST(LatencyHistogram, HasThePercentilesOfAHundred) {
  LatencyHistogram histogram;
  for (int ns = 100; ns >= 1; --ns) {
    histogram.Record(nanoseconds(ns));
  }

  EXPECT_DOUBLE_EQ(histogram.PercentileSeconds(50), 50e-9);
  EXPECT_DOUBLE_EQ(histogram.PercentileSeconds(90), 90e-9);
  EXPECT_DOUBLE_EQ(histogram.PercentileSeconds(99), 99e-9);
  EXPECT_DOUBLE_EQ(histogram.MeanSeconds(), 50.5e-9);
  EXPECT_DOUBLE_EQ(histogram.MaxSeconds(), 100e-9);
  EXPECT_EQ(histogram.count(), 100);
}

TEST(LatencyHistogram, IsOffByLessThanATwoThousandthWhereverItLies) {
  for (int64_t ns = 1; ns < int64_t{1} << 60; ns = ns * 3 / 2 + 1) {
    // A shorter and a longer one, so that the answer is not the exact least or longest.
    const LatencyHistogram histogram = Of({0, ns, 2 * ns + 1});

    const auto expected = static_cast<double>(ns) * 1e-9;
    EXPECT_NEAR(histogram.PercentileSeconds(50), expected, expected * 0.0005) << ns;
  }
}

TEST(LatencyHistogram, IsExactAtTheEnds) {
  const LatencyHistogram histogram = Of({123'456'789, 987'654'321});

  EXPECT_NEAR(histogram.PercentileSeconds(1), 0.123456789, 0.00007);
  EXPECT_DOUBLE_EQ(histogram.MaxSeconds(), 0.987654321);
  EXPECT_DOUBLE_EQ(histogram.MeanSeconds(), 0.555555555);
  EXPECT_LE(histogram.PercentileSeconds(100), 0.987654321);
}

TEST(LatencyHistogram, CountsOneDurationManyTimes) {
  LatencyHistogram histogram;
  histogram.Record(nanoseconds(10), 3);
  histogram.Record(nanoseconds(20), 1);
  histogram.Record(nanoseconds(1000), 0);

  EXPECT_EQ(histogram.count(), 4);
  EXPECT_DOUBLE_EQ(histogram.PercentileSeconds(75), 10e-9);
  EXPECT_DOUBLE_EQ(histogram.PercentileSeconds(76), 20e-9);
  EXPECT_DOUBLE_EQ(histogram.MeanSeconds(), 12.5e-9);
}

TEST(LatencyHistogram, IsZeroWhenEmpty) {
  const LatencyHistogram histogram;

  EXPECT_EQ(histogram.count(), 0);
  EXPECT_EQ(histogram.PercentileSeconds(50), 0);
  EXPECT_EQ(histogram.MeanSeconds(), 0);
  EXPECT_EQ(histogram.MaxSeconds(), 0);
}

TEST(LatencyHistogram, TakesANegativeDurationForNone) {
  EXPECT_EQ(Of({-5}).PercentileSeconds(50), 0);
  EXPECT_EQ(Of({-5}).MeanSeconds(), 0);
}

}  // namespace
}  // namespace switchyard
