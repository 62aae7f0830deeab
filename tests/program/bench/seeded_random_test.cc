#include "program/bench/seeded_random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace switchyard {
namespace {

using Purpose = SeededRandom::Purpose;

// The expected numbers come from a few lines of Python that follow the paper.
TEST(SeededRandom, GivesTheNumbersOfTheAlgorithmOnEveryMachine) {
  SeededRandom random(7, Purpose::kPrompt, 0);

  EXPECT_EQ(random.Next(), 1310547883708944031U);
  EXPECT_EQ(random.Next(), 14184224429757473100U);
  EXPECT_EQ(random.Next(), 16751917463256480218U);
  EXPECT_EQ(SeededRandom(7, Purpose::kPrompt, 1).Next(), 3143656764140997342U);
  EXPECT_DOUBLE_EQ(SeededRandom(0, Purpose::kArrival, 0).NextUnit(), 0.2558852031320078);
}

TEST(SeededRandom, DrawsBelowALimit) {
  SeededRandom random(7, Purpose::kPrompt, 0);

  for (const uint64_t expected : {71U, 768U, 908U, 294U, 775U}) {
    EXPECT_EQ(random.NextBelow(1000), expected);
  }
  EXPECT_EQ(random.NextBelow(1), 0U);
}

TEST(SeededRandom, DrawsNormalAndExponentialNumbers) {
  SeededRandom random(1, Purpose::kShape, 5);
  double sum = 0;
  double squares = 0;
  double waits = 0;
  constexpr int kDraws = 100'000;
  for (int i = 0; i < kDraws; ++i) {
    const double normal = random.NextNormal();
    sum += normal;
    squares += normal * normal;
    waits += random.NextExponential();
  }

  // Five deviations of these means: 5 / sqrt(100,000) times 1, sqrt(2) and 1.
  EXPECT_NEAR(sum / kDraws, 0, 0.016);
  EXPECT_NEAR(squares / kDraws, 1, 0.023);
  EXPECT_NEAR(waits / kDraws, 1, 0.016);
}

}  // namespace
}  // namespace switchyard
