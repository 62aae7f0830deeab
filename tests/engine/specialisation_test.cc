#include "engine/specialisation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace switchyard {
namespace {

using ::testing::ElementsAre;

// Half of all 64 tokens came to the expert. This one came 7 times, always to it: with one more
// time, half of it to the expert, 7.5 of 8: log2(0.9375 / 0.5).
TEST(PointwiseMutualInformation, IsTheLogarithmOfASmoothedRatio) {
  EXPECT_NEAR(
      PointwiseMutualInformation({.both = 7, .token = 7, .expert = 32, .all = 64}), 0.9068906, 1e-7
  );
  // 1.25 of 5 is the expert's share.
  EXPECT_DOUBLE_EQ(PointwiseMutualInformation({.both = 1, .token = 4, .expert = 16, .all = 64}), 0);
  // 0.125 of 4 instead of 1 in 8: a quarter.
  EXPECT_DOUBLE_EQ(PointwiseMutualInformation({.both = 0, .token = 3, .expert = 8, .all = 64}), -2);
}

// Token 10 occurs 6 times, token 20 5 times, token 30 once. Expert 0 got 5, 1 and 1 of them.
TextRouting ThreeTokens() {
  TextRouting text{
      .tokens = 12, .token_ids = {10, 20, 30}, .occurrences = {6, 5, 1}, .routers = {}};
  text.routers.push_back(
      {.layer = 4,
       .kind = RouterKind::kAttention,
       .heads = 1,
       .experts = 3,
       .top_k = 1,
       .assignments = {5, 1, 0, 1, 4, 0, 1, 0, 0}}
  );
  return text;
}

// Expert 0 has 7 of 12 choices, expert 1 5, expert 2 none. Token 10: log2((5 + 7/12) / 7 / (7/12))
// = 0.4514; token 20 to expert 1: log2((4 + 5/12) / 6 / (5/12)) = 0.8210; token 30 to expert 0:
// log2((1 + 7/12) / 2 / (7/12)) = 0.4406.
TEST(SpecialitiesOf, RankTokensByInformation) {
  const TextRouting text = ThreeTokens();

  const std::vector<ExpertSpeciality> experts =
      SpecialitiesOf(text, text.routers[0], {.min_occurrences = 1});

  ASSERT_EQ(experts.size(), 3);
  EXPECT_EQ(experts[0].assignments, 7);
  EXPECT_DOUBLE_EQ(experts[0].share, 7.0 / 12);
  ASSERT_EQ(experts[0].tokens.size(), 2);
  EXPECT_EQ(experts[0].tokens[0].token_id, 10);
  EXPECT_EQ(experts[0].tokens[0].routed, 5);
  EXPECT_EQ(experts[0].tokens[0].occurrences, 6);
  EXPECT_NEAR(experts[0].tokens[0].information_bits, 0.4514, 1e-4);
  EXPECT_EQ(experts[0].tokens[1].token_id, 30);
  EXPECT_NEAR(experts[0].tokens[1].information_bits, 0.4406, 1e-4);
  // Token 10 comes to expert 1, too, but less often than chance.
  ASSERT_EQ(experts[1].tokens.size(), 1);
  EXPECT_EQ(experts[1].tokens[0].token_id, 20);
  EXPECT_NEAR(experts[1].tokens[0].information_bits, 0.8210, 1e-4);
  EXPECT_TRUE(experts[2].tokens.empty());
  EXPECT_EQ(experts[2].share, 0);
}

// Two of three experts for each token: token 10 came 6 of 6 times to expert 0, to which 8 of 9
// tokens came: log2((6 + 8/9) / 7 / (8/9)) = 0.1468. Shares are of choices, 18.
TEST(SpecialitiesOf, CountTokensNotChoices) {
  TextRouting text{.tokens = 9, .token_ids = {10, 20}, .occurrences = {6, 3}, .routers = {}};
  text.routers.push_back({.experts = 3, .top_k = 2, .assignments = {6, 4, 2, 2, 1, 3}});

  const auto experts = SpecialitiesOf(text, text.routers[0], {.min_occurrences = 1});

  EXPECT_DOUBLE_EQ(experts[0].share, 8.0 / 18);
  EXPECT_EQ(experts[0].tokens[0].occurrences, 6);
  EXPECT_NEAR(experts[0].tokens[0].information_bits, 0.1468, 1e-4);
}

TEST(SpecialitiesOf, LeaveOutRareTokensAndWhatIsOverTheNumber) {
  const TextRouting text = ThreeTokens();

  const auto frequent = SpecialitiesOf(text, text.routers[0], {.min_occurrences = 5});
  const auto one = SpecialitiesOf(text, text.routers[0], {.min_occurrences = 1, .most_tokens = 1});

  ASSERT_EQ(frequent[0].tokens.size(), 1);
  EXPECT_EQ(frequent[0].tokens[0].token_id, 10);
  EXPECT_EQ(one[0].tokens.size(), 1);
}

TEST(CountTokens, SaysWhereEachStandsAmongTheDistinctOnes) {
  const std::vector<int32_t> tokens = {7, 9, 7, 7, 3};
  TextRouting text;

  EXPECT_THAT(CountTokens(tokens, text), ElementsAre(0, 1, 0, 0, 2));
  EXPECT_THAT(text.token_ids, ElementsAre(7, 9, 3));
  EXPECT_THAT(text.occurrences, ElementsAre(3, 1, 1));
  EXPECT_EQ(text.tokens, 5);
}

// Two heads of three experts, of which two work on each token; the second token has a choice less.
TEST(CountAssignments, AddsToTheCellsOfTokenHeadAndExpert) {
  RouterCounts router = {.heads = 2, .experts = 3, .top_k = 2, .assignments = {}};
  router.assignments.resize(12, 0);
  const std::vector<size_t> places = {1, 0, 1};
  const std::vector<int32_t> expert_ids = {0, 2, 1, 0, 1, -1, 2, 1, 2, 0, 1, 2};

  CountAssignments(places, expert_ids, router);

  EXPECT_THAT(router.assignments, ElementsAre(0, 1, 0, 0, 1, 1, 2, 0, 2, 1, 2, 1));
}

}  // namespace
}  // namespace switchyard
