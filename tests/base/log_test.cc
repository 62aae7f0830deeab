#include "base/log.h"

#include <gtest/gtest.h>

namespace switchyard {
namespace {

TEST(Log, KnowsItsLevels) {
  for (const char* level : {"debug", "info", "warning", "error", "off"}) {
    EXPECT_TRUE(SetLogLevel(level)) << level;
  }
  EXPECT_FALSE(SetLogLevel("loud"));
}

}  // namespace
}  // namespace switchyard
