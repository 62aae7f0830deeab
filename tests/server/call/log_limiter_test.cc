#include "server/call/log_limiter.h"

#include <gtest/gtest.h>

namespace switchyard {
namespace {

TEST(LogLimiter, CountsWhatComesAfterTheFewOfASecond) {
  LogLimiter limiter(2);
  const Clock::time_point start;

  EXPECT_EQ(limiter.Admit(start), 0);
  EXPECT_EQ(limiter.Admit(start), 0);
  EXPECT_EQ(limiter.Admit(start), std::nullopt);
  EXPECT_EQ(limiter.Admit(start + std::chrono::milliseconds(999)), std::nullopt);
  EXPECT_EQ(limiter.Admit(start + std::chrono::seconds(1)), 2);
  EXPECT_EQ(limiter.Admit(start + std::chrono::seconds(1)), 0);
  EXPECT_EQ(limiter.Admit(start + std::chrono::seconds(1)), std::nullopt);
}

}  // namespace
}  // namespace switchyard
