#include "program/bench/length_distribution.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace switchyard {
namespace {

using ::testing::HasSubstr;

std::vector<int32_t> Draws(const std::string& text, int count) {
  const StatusOr<LengthDistribution> lengths = LengthDistribution::Parse(text);
  EXPECT_TRUE(lengths.ok()) << lengths.status();
  SeededRandom random(3, SeededRandom::Purpose::kShape, 0);
  std::vector<int32_t> drawn;
  for (int i = 0; i < count; ++i) {
    drawn.push_back(lengths->Draw(random));
  }
  std::sort(drawn.begin(), drawn.end());
  return drawn;
}

TEST(LengthDistribution, IsOneLengthWhenFixed) {
  EXPECT_EQ(Draws("fixed:17", 3), (std::vector<int32_t>{17, 17, 17}));
  EXPECT_EQ(Draws("17", 2), (std::vector<int32_t>{17, 17}));
  EXPECT_EQ(Draws("uniform:9-9", 2), (std::vector<int32_t>{9, 9}));
}

TEST(LengthDistribution, ReachesBothEndsWhenUniform) {
  const std::vector<int32_t> drawn = Draws("uniform:3-7", 5000);

  for (int32_t tokens = 3; tokens <= 7; ++tokens) {
    // 1000 each; five deviations are 5 * sqrt(5000 * 0.2 * 0.8) = 141.
    EXPECT_NEAR(std::count(drawn.begin(), drawn.end(), tokens), 1000, 141) << tokens;
  }
  EXPECT_EQ(drawn.front(), 3);
  EXPECT_EQ(drawn.back(), 7);
}

TEST(LengthDistribution, HasItsMedianAndDeviationWhenLogNormal) {
  const std::vector<int32_t> drawn = Draws("lognormal:100,0.5,100000", 10'001);

  // Five deviations of the median's logarithm: 5 * 0.5 * sqrt(pi / 2) / 100 = 3 %.
  EXPECT_NEAR(drawn[5000], 100, 3);
  // The quantile of one deviation above, 84.13 %: 100 * exp(0.5) = 165.
  EXPECT_NEAR(drawn[8414], 165, 6);
}

TEST(LengthDistribution, CutsLogNormalLengthsAtTheirEnds) {
  const std::vector<int32_t> drawn = Draws("lognormal:2,3,5", 1000);

  EXPECT_EQ(drawn.front(), 1);
  EXPECT_EQ(drawn.back(), 5);
}

TEST(LengthDistribution, KnowsItsLongest) {
  EXPECT_EQ(LengthDistribution::Parse("uniform:3-7")->MaxTokens(), 7);
  EXPECT_EQ(LengthDistribution::Parse("lognormal:2,3,5")->MaxTokens(), 5);
  EXPECT_EQ(LengthDistribution::Fixed(4).MaxTokens(), 4);
}

TEST(LengthDistribution, WritesWhatItReads) {
  for (const std::string text : {"fixed:17", "uniform:3-7", "lognormal:100,0.5,4000"}) {
    EXPECT_EQ(LengthDistribution::Parse(text)->ToString(), text);
  }
}

TEST(LengthDistribution, RefusesEverythingElse) {
  for (const std::string text :
       {"",
        "fixed:",
        "fixed:0",
        "fixed:-3",
        "fixed:1.5",
        "fixed:12x",
        "fixed:16777217",
        "uniform:7-3",
        "uniform:3",
        "uniform:1-2-3",
        "uniform:0-3",
        "lognormal:100,0.5",
        "lognormal:100,nan,200",
        "lognormal:100,11,200",
        "lognormal:100,-1,200",
        "lognormal:201,1,200",
        "lognormal:1,1,2,3",
        "normal:3"}) {
    const StatusOr<LengthDistribution> lengths = LengthDistribution::Parse(text);

    EXPECT_EQ(lengths.status().code(), StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(MessageOf(lengths.status()), HasSubstr("\"" + text + "\""));
  }
}

}  // namespace
}  // namespace switchyard
