#include "kernels/random.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace switchyard {
namespace {

using testing::ElementsAre;

constexpr uint32_t kOnes = 0xffffffff;
constexpr uint64_t kHigh = uint64_t{1} << 32;
constexpr int kDraws = 20000;

// The three known answers that the authors of Philox publish for 4x32 with 10 rounds.
TEST(Philox, GivesTheKnownAnswerForZeros) {
  EXPECT_THAT(
      Philox4x32({0, 0, 0, 0}, {0, 0}), ElementsAre(0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8)
  );
}

TEST(Philox, GivesTheKnownAnswerForOnes) {
  EXPECT_THAT(
      Philox4x32({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}),
      ElementsAre(0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd)
  );
}

TEST(Philox, GivesTheKnownAnswerForTheDigitsOfPi) {
  EXPECT_THAT(
      Philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
      ElementsAre(0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1)
  );
}

TEST(UniformDraw, IsTheTop53BitsOfTheFirstTwoWords) {
  // 0x6627e8d5e169c58d, from the answer for zeros, without its last 11 bits, over 2^53.
  EXPECT_EQ(UniformDraw(0, 0), static_cast<double>(0x6627e8d5e169c58dULL >> 11) / 0x1p53);
}

TEST(UniformDraw, UsesBothHalvesOfSeedAndPosition) {
  const double draw = UniformDraw(1, 1);

  EXPECT_NE(draw, UniformDraw(1 + kHigh, 1));
  EXPECT_NE(draw, UniformDraw(1, 1 + kHigh));
  EXPECT_NE(draw, UniformDraw(2, 1));
  EXPECT_NE(draw, UniformDraw(1, 2));
}

TEST(UniformDraw, FillsTenBinsEvenly) {
  std::array<int, 10> bins = {};

  for (int position = 0; position < kDraws; ++position) {
    const double draw = UniformDraw(42, static_cast<uint64_t>(position));
    ASSERT_GE(draw, 0);
    ASSERT_LT(draw, 1);
    ++bins[static_cast<size_t>(draw * 10)];
  }

  for (const int count : bins) {
    EXPECT_NEAR(count, 2000, 220) << "five standard deviations";
  }
}

}  // namespace
}  // namespace switchyard
