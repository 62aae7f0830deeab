#include "base/check.h"

#include <gtest/gtest.h>

namespace switchyard {
namespace {

TEST(CheckDeathTest, StopsTheProcessAndSaysWhatFailedAndWhere) {
  const int rows = -3;

  EXPECT_DEATH(
      CHECK(rows >= 0) << "rows=" << rows,
      "check_test.cc:[0-9]+: CHECK\\(rows >= 0\\) failed rows=-3"
  );
}

TEST(Check, EvaluatesItsMessageOnlyWhenItFails) {
  int evaluations = 0;

  CHECK(evaluations == 0) << ++evaluations;

  EXPECT_EQ(evaluations, 0);
}

}  // namespace
}  // namespace switchyard
