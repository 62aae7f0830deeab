#include "server/engine_watchdog.h"

#include <gtest/gtest.h>

namespace switchyard {
namespace {

using std::chrono::milliseconds;

Clock::time_point At(int64_t ms) {
  return Clock::time_point(milliseconds(ms));
}

EngineLoad Busy(int64_t heartbeats) {
  EngineLoad load;
  load.running_requests = 1;
  load.heartbeats = heartbeats;
  return load;
}

TEST(EngineWatchdog, FindsAnEngineHangingWhoseStepTakesTheWholeTimeout) {
  EngineWatchdog watchdog(milliseconds(1000));

  EXPECT_FALSE(watchdog.IsHanging(Busy(5), At(0)));
  EXPECT_FALSE(watchdog.IsHanging(Busy(5), At(999)));
  EXPECT_TRUE(watchdog.IsHanging(Busy(5), At(1000)));
}

TEST(EngineWatchdog, FindsItHangingWhenRequestsOnlyWait) {
  EngineWatchdog watchdog(milliseconds(1000));
  EngineLoad load;
  load.waiting_requests = 1;

  watchdog.IsHanging(load, At(0));

  EXPECT_TRUE(watchdog.IsHanging(load, At(1000)));
}

TEST(EngineWatchdog, CountsAnewFromEveryStep) {
  EngineWatchdog watchdog(milliseconds(1000));
  watchdog.IsHanging(Busy(5), At(0));

  EXPECT_FALSE(watchdog.IsHanging(Busy(6), At(1000)));
  EXPECT_FALSE(watchdog.IsHanging(Busy(6), At(1999)));
  EXPECT_TRUE(watchdog.IsHanging(Busy(6), At(2000)));
}

TEST(EngineWatchdog, FindsItWellAgainAfterAStep) {
  EngineWatchdog watchdog(milliseconds(1000));
  watchdog.IsHanging(Busy(5), At(0));
  ASSERT_TRUE(watchdog.IsHanging(Busy(5), At(5000)));

  EXPECT_FALSE(watchdog.IsHanging(Busy(6), At(5001)));
}

TEST(EngineWatchdog, LetsAnIdleEngineSleep) {
  EngineWatchdog watchdog(milliseconds(1000));
  watchdog.IsHanging(EngineLoad(), At(0));

  EXPECT_FALSE(watchdog.IsHanging(EngineLoad(), At(50'000)));
  EXPECT_FALSE(watchdog.IsHanging(Busy(0), At(50'500)));
}

TEST(EngineWatchdog, IsOffWithoutATimeout) {
  EngineWatchdog watchdog(milliseconds(0));
  watchdog.IsHanging(Busy(5), At(0));

  EXPECT_FALSE(watchdog.IsHanging(Busy(5), At(1'000'000'000)));
}

}  // namespace
}  // namespace switchyard
