#include "engine/beam_search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace switchyard {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatEq;
using ::testing::SizeIs;

using Top = std::vector<TokenLogprobValue>;

std::vector<std::pair<int32_t, int32_t>> Pairs(const std::vector<BeamSearch::Child>& children) {
  std::vector<std::pair<int32_t, int32_t>> pairs;
  for (const BeamSearch::Child& child : children) {
    pairs.emplace_back(child.parent, child.token);
  }
  return pairs;
}

TEST(BeamSearch, BeginsWithTheLikeliestTokensOfThePrompt) {
  BeamSearch search({.width = 2, .max_tokens = 5});

  search.Report(0, Top{{7, -0.5F}, {3, -1}, {9, -2}});

  ASSERT_TRUE(search.IsRoundComplete());
  EXPECT_THAT(Pairs(search.Advance()), ElementsAre(std::pair(0, 7), std::pair(0, 3)));
  EXPECT_FALSE(search.IsOver());
  EXPECT_FALSE(search.IsRoundComplete());
}

TEST(BeamSearch, KeepsABeamInItsPlaceAndGivesTheOthersAway) {
  BeamSearch search({.width = 2, .max_tokens = 5});
  search.Report(0, Top{{7, -0.5F}, {3, -1}});
  search.Advance();

  // -0.5 - 3 and -0.5 - 4 against -1 - 0.1 and -1 - 0.2: both children are beam 1's.
  search.Report(0, Top{{1, -3}, {2, -4}});
  search.Report(1, Top{{5, -0.1F}, {6, -0.2F}});

  EXPECT_THAT(Pairs(search.Advance()), ElementsAre(std::pair(1, 6), std::pair(1, 5)));
}

TEST(BeamSearch, EndsAtMaxTokensWithTheBeamsByScore) {
  BeamSearch search({.width = 2, .max_tokens = 2});
  search.Report(0, Top{{7, -0.5F}, {3, -1}});
  search.Advance();
  search.Report(0, Top{{1, -1}, {2, -4}});
  search.Report(1, Top{{5, -0.1F}, {6, -9}});
  search.Advance();

  ASSERT_TRUE(search.IsOver());
  ASSERT_THAT(search.hypotheses(), SizeIs(2));
  EXPECT_THAT(search.hypotheses()[0].tokens, ElementsAre(3, 5));
  EXPECT_THAT(search.hypotheses()[0].logprobs, ElementsAre(FloatEq(-1), FloatEq(-0.1F)));
  EXPECT_NEAR(search.hypotheses()[0].score, -1.1 / 2, 1e-6);
  EXPECT_FALSE(search.hypotheses()[0].ends_with_stop_token);
  EXPECT_THAT(search.hypotheses()[1].tokens, ElementsAre(7, 1));
}

TEST(BeamSearch, MakesAHypothesisOfABeamThatStopsAndGoesOnWithTheNextBest) {
  BeamSearch search({.width = 2, .max_tokens = 9, .eos_token_ids = {0}});

  search.Report(0, Top{{0, -0.1F}, {7, -0.5F}, {3, -1}});

  EXPECT_THAT(Pairs(search.Advance()), ElementsAre(std::pair(0, 7), std::pair(0, 3)));
  EXPECT_FALSE(search.IsOver());
}

TEST(BeamSearch, IsOverWhenNoBeamCanBeatTheHypotheses) {
  BeamSearch search({.width = 1, .length_penalty = 0, .max_tokens = 9, .eos_token_ids = {0}});

  search.Report(0, Top{{0, -0.1F}, {7, -0.5F}});
  search.Advance();

  ASSERT_TRUE(search.IsOver());
  ASSERT_THAT(search.hypotheses(), SizeIs(1));
  EXPECT_THAT(search.hypotheses()[0].tokens, ElementsAre(0));
  EXPECT_TRUE(search.hypotheses()[0].ends_with_stop_token);
}

TEST(BeamSearch, FavoursLongHypothesesWithALargerLengthPenalty) {
  const auto best = [](float length_penalty) {
    BeamSearch search(
        {.width = 2, .length_penalty = length_penalty, .max_tokens = 2, .stop_token_ids = {0}}
    );
    search.Report(0, Top{{0, -1}, {7, -0.9F}, {3, -5}});
    search.Advance();
    search.Report(0, Top{{1, -0.9F}, {2, -3}, {4, -8}});
    search.Report(1, Top{{5, -0.9F}, {6, -3}, {8, -8}});
    search.Advance();
    return search.hypotheses()[0].tokens;
  };

  EXPECT_THAT(best(0), ElementsAre(0)) << "-1 against -1.8";
  EXPECT_THAT(best(1), ElementsAre(7, 1)) << "-1 against -1.8 / 2";
}

TEST(BeamSearch, StopsNoHypothesisBeforeMinTokens) {
  BeamSearch search({.width = 1, .max_tokens = 9, .min_tokens = 2, .eos_token_ids = {0}});

  search.Report(0, Top{{0, -0.1F}, {7, -0.5F}});

  EXPECT_THAT(Pairs(search.Advance()), ElementsAre(std::pair(0, 7)));
  EXPECT_FALSE(search.IsOver());
}

TEST(BeamSearch, AsksForEnoughTokensThatStopTokensCrowdNoBeamOut) {
  EXPECT_EQ(BeamSearch::TopTokens({.width = 4, .eos_token_ids = {0, 1}, .stop_token_ids = {9}}), 7);
}

}  // namespace
}  // namespace switchyard
