#include "server/access/rate_limit.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <random>
#include <vector>

namespace switchyard {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

constexpr Clock::time_point kStart{};

TEST(RateLimit, BeginsWithAMinutesWorthAndFillsEvenly) {
  RateLimit limit(60, kStart);

  EXPECT_TRUE(limit.Take(60, kStart).is_taken);
  EXPECT_FALSE(limit.Take(1, kStart + milliseconds(999)).is_taken);
  EXPECT_TRUE(limit.Take(1, kStart + milliseconds(1000)).is_taken);
  EXPECT_EQ(limit.Available(kStart + seconds(11)), 10);
  EXPECT_EQ(limit.Available(kStart + seconds(1000)), 60);
}

TEST(RateLimit, SaysToTheNanosecondWhenToComeAgain) {
  RateLimit limit(7, kStart);
  ASSERT_TRUE(limit.Take(7, kStart).is_taken);

  const RateLimit::Verdict verdict = limit.Take(1, kStart);

  // A seventh of a minute, rounded up.
  ASSERT_EQ(verdict.retry_after, nanoseconds(8'571'428'572));
  EXPECT_FALSE(limit.Take(1, kStart + nanoseconds(8'571'428'571)).is_taken);
  EXPECT_TRUE(limit.Take(1, kStart + nanoseconds(8'571'428'572)).is_taken);
}

TEST(RateLimit, NeverTakesMoreThanAMinuteHolds) {
  RateLimit limit(10, kStart);

  const RateLimit::Verdict verdict = limit.Take(11, kStart + seconds(600));

  EXPECT_FALSE(verdict.is_taken);
  EXPECT_FALSE(verdict.retry_after.has_value());
}

TEST(RateLimit, TakesAnythingWithoutALimit) {
  RateLimit limit(0, kStart);

  EXPECT_TRUE(limit.Take(INT64_MAX, kStart).is_taken);
  limit.Return(INT64_MAX, kStart);
  EXPECT_TRUE(limit.Take(INT64_MAX, kStart).is_taken);
}

TEST(RateLimit, IsNotFooledByAClockThatGoesBack) {
  RateLimit limit(60, kStart + seconds(100));
  ASSERT_TRUE(limit.Take(60, kStart + seconds(100)).is_taken);

  EXPECT_EQ(limit.Available(kStart), 0);
  EXPECT_EQ(limit.Available(kStart + seconds(100)), 0);
  EXPECT_EQ(limit.Available(kStart + seconds(101)), 1);
}

TEST(RateLimit, HoldsTheLargestLimitAndTheLongestPauseWithoutOverflow) {
  RateLimit limit(RateLimit::kMaxPerMinute, kStart);
  ASSERT_TRUE(limit.Take(RateLimit::kMaxPerMinute, kStart).is_taken);

  limit.Return(INT64_MAX, kStart);
  EXPECT_EQ(limit.Available(kStart), RateLimit::kMaxPerMinute);
  ASSERT_TRUE(limit.Take(RateLimit::kMaxPerMinute, kStart).is_taken);
  EXPECT_EQ(limit.Available(Clock::time_point::max()), RateLimit::kMaxPerMinute);
}

// A random history of takes and returns, with what was taken (less what was returned at once).
struct Taken {
  Clock::time_point at;
  int64_t units;
};

class RateLimitHistory : public ::testing::TestWithParam<int> {};

TEST_P(RateLimitHistory, HoldsOverEveryStretchOfTimeAndLetsThoseInWhoWait) {
  std::mt19937_64 random(static_cast<uint64_t>(GetParam()));
  const auto draw = [&random](int64_t least, int64_t most) {
    return least + static_cast<int64_t>(random() % static_cast<uint64_t>(most - least + 1));
  };
  const int64_t per_minute = draw(1, GetParam() % 2 == 0 ? 20 : 1'000'000);
  RateLimit limit(per_minute, kStart);
  Clock::time_point now = kStart;
  std::vector<Taken> history;
  for (int step = 0; step < 300; ++step) {
    now += nanoseconds(draw(0, 1) == 0 ? draw(0, 1000) : draw(0, 20'000'000'000));
    const int64_t units = draw(0, per_minute + per_minute / 4);
    RateLimit::Verdict verdict = limit.Take(units, now);
    ASSERT_EQ(verdict.retry_after.has_value(), !verdict.is_taken && units <= per_minute);
    if (verdict.retry_after && draw(0, 1) == 0) {
      // One nanosecond earlier is too early; then it is time.
      ASSERT_FALSE(limit.Take(units, now + *verdict.retry_after - nanoseconds(1)).is_taken);
      now += *verdict.retry_after;
      verdict = limit.Take(units, now);
      ASSERT_TRUE(verdict.is_taken);
    }
    if (verdict.is_taken) {
      const int64_t unused = draw(0, 2) == 0 ? draw(0, units) : 0;
      limit.Return(unused, now);
      history.push_back({.at = now, .units = units - unused});
    }
    ASSERT_LE(limit.Available(now), per_minute);
  }

  // From any taking to any later one: at most a full bucket and what the time brought.
  for (size_t first = 0; first < history.size(); ++first) {
    int64_t sum = 0;
    for (size_t last = first; last < history.size(); ++last) {
      sum += history[last].units;
      const auto minutes =
          std::chrono::duration<double, std::ratio<60>>(history[last].at - history[first].at);
      ASSERT_LE(
          static_cast<double>(sum), static_cast<double>(per_minute) * (1 + minutes.count()) + 1e-3
      );
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RateLimitHistory, ::testing::Range(1, 41));

}  // namespace
}  // namespace switchyard
