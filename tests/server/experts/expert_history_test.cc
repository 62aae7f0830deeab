#include "server/experts/expert_history.h"

#include <gtest/gtest.h>

namespace switchyard {
namespace {

// One router of one expert, which has got a token each second until `uptime_seconds`.
ExpertSnapshot At(double uptime_seconds) {
  ExpertStatistics statistics;
  statistics.uptime_seconds = uptime_seconds;
  statistics.routers.push_back(
      {.layer = 0,
       .experts = 1,
       .top_k = 1,
       .tokens = {static_cast<int64_t>(uptime_seconds), 0, 0, 0},
       .gate_sum = {0.5 * uptime_seconds, 0, 0, 0}}
  );
  return std::make_shared<const ExpertStatistics>(statistics);
}

int64_t TokensOf(const WindowedStatistics& window) {
  return window.statistics.routers.at(0).tokens.at(0);
}

class FilledHistory : public ::testing::Test {
 protected:
  FilledHistory() {
    for (int second = 1; second <= 1000; ++second) {
      history_.Add(At(second));
    }
  }
  ExpertHistory history_;
};

TEST_F(FilledHistory, TakesASlidingWindowFromTheCopyThatIsOldEnough) {
  const WindowedStatistics window = history_.Window(ExpertWindow::kTenSeconds, *At(1000.5));

  EXPECT_EQ(TokensOf(window), 10);  // since second 990
  EXPECT_EQ(window.window_seconds, 10.5);
  EXPECT_EQ(window.statistics.routers[0].gate_sum[0], 5.25);
}

TEST_F(FilledHistory, KeepsLongerWindowsWithinATenthOfTheirLength) {
  const WindowedStatistics minute = history_.Window(ExpertWindow::kOneMinute, *At(1000));
  const WindowedStatistics ten_minutes = history_.Window(ExpertWindow::kTenMinutes, *At(1000));

  EXPECT_GE(minute.window_seconds, 60);
  EXPECT_LE(minute.window_seconds, 66);
  EXPECT_EQ(TokensOf(minute), minute.window_seconds);
  EXPECT_GE(ten_minutes.window_seconds, 600);
  EXPECT_LE(ten_minutes.window_seconds, 660);
  EXPECT_EQ(TokensOf(ten_minutes), ten_minutes.window_seconds);
}

TEST_F(FilledHistory, HasTheWholeLifeWithoutAnyCopy) {
  const WindowedStatistics window = history_.Window(ExpertWindow::kLife, *At(1003));

  EXPECT_EQ(TokensOf(window), 1003);
  EXPECT_EQ(window.window_seconds, 1003);
}

TEST_F(FilledHistory, CountsFromTheLastReset) {
  EXPECT_EQ(TokensOf(history_.Window(ExpertWindow::kSinceReset, *At(1000))), 1000);

  history_.Reset(At(1004));

  EXPECT_EQ(TokensOf(history_.Window(ExpertWindow::kSinceReset, *At(1007))), 3);
  EXPECT_EQ(TokensOf(history_.Window(ExpertWindow::kLife, *At(1007))), 1007);
  EXPECT_EQ(TokensOf(history_.Window(ExpertWindow::kTenSeconds, *At(1007))), 10);
}

TEST(ExpertHistory, BeginsAWindowLongerThanTheServersLifeAtItsStart) {
  ExpertHistory history;
  history.Add(At(3));
  history.Add(At(6));

  const WindowedStatistics window = history.Window(ExpertWindow::kTenSeconds, *At(7));

  EXPECT_EQ(TokensOf(window), 7);
  EXPECT_EQ(window.window_seconds, 7);
}

TEST(ExpertHistory, BeginsAtTheOldestCopyThereIsAfterAGap) {
  ExpertHistory history;
  history.Add(At(5));
  history.Add(At(100));

  // The copy of second 5 went when that of second 100 came, but one of before the window stays.
  EXPECT_EQ(TokensOf(history.Window(ExpertWindow::kTenSeconds, *At(101))), 96);
  EXPECT_EQ(TokensOf(history.Window(ExpertWindow::kTenSeconds, *At(111))), 11);
}

}  // namespace
}  // namespace switchyard
