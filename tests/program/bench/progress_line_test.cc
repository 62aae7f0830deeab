#include "program/bench/progress_line.h"

#include <gtest/gtest.h>

namespace switchyard {
namespace {

LoadProgress HalfWay() {
  return {
      .done_share = 0.5,
      .running = 64,
      .ended = 128,
      .failed = 3,
      .received_tokens = 5000,
      .seconds = 2};
}

TEST(ProgressText, HasABarAndNumbers) {
  EXPECT_EQ(
      ProgressText("load", HalfWay(), 200),
      "load [###############...............] 50%  128 ended, 64 running, 3 failed, 2500 tokens/s"
  );
}

TEST(ProgressText, ShortensTheBarWhereThereIsLessRoom) {
  const std::string line = ProgressText("load", HalfWay(), 70);

  EXPECT_EQ(line, "load [#####......] 50%  128 ended, 64 running, 3 failed, 2500 tokens/s");
  EXPECT_LE(line.size(), 70U);
}

TEST(ProgressText, GivesUpTheBarAndThenNumbersOnANarrowTerminal) {
  EXPECT_EQ(
      ProgressText("load", HalfWay(), 60),
      "load 50%  128 ended, 64 running, 3 failed, 2500 tokens/s"
  );
  EXPECT_EQ(ProgressText("load", HalfWay(), 20), "load 50%  128 ended,");
  EXPECT_EQ(ProgressText("load", HalfWay(), 0), "");
}

TEST(ProgressText, FillsTheBarAtTheEnd) {
  EXPECT_EQ(
      ProgressText("warm-up", {.done_share = 1, .ended = 8}, 80),
      "warm-up [##############################] 100%  8 ended"
  );
}

}  // namespace
}  // namespace switchyard
