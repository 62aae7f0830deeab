#include "engine/stop_checker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/engine/make_sequence.h"

namespace switchyard {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

StopChecker Checker() {
  return StopChecker({2, 3}, 100);
}

TEST(StopChecker, GoesOnAfterAnOrdinaryToken) {
  const auto sequence =
      MakeSequence({.prompt = {5}, .generated = {7}, .stopping = {.max_tokens = 9}});

  EXPECT_FALSE(Checker().Check(*sequence).has_value());
}

TEST(StopChecker, StopsAtEachEndOfSequenceToken) {
  const auto sequence =
      MakeSequence({.prompt = {5}, .generated = {3}, .stopping = {.max_tokens = 9}});

  const auto match = Checker().Check(*sequence);

  ASSERT_TRUE(match.has_value());
  EXPECT_EQ(match->reason, FinishReason::kStop);
  EXPECT_EQ(match->token_id, 3);
  EXPECT_TRUE(match->is_eos);
}

TEST(StopChecker, StopsAtAStopTokenOfTheRequest) {
  const auto sequence = MakeSequence(
      {.prompt = {5}, .generated = {8}, .stopping = {.max_tokens = 9, .stop_token_ids = {6, 8}}}
  );

  const auto match = Checker().Check(*sequence);

  ASSERT_TRUE(match.has_value());
  EXPECT_EQ(match->reason, FinishReason::kStop);
  EXPECT_EQ(match->token_id, 8);
  EXPECT_FALSE(match->is_eos);
}

TEST(StopChecker, TakesAnIgnoredEndOfSequenceForATokenLikeAnyOther) {
  const auto sequence = MakeSequence(
      {.prompt = {5}, .generated = {2}, .stopping = {.max_tokens = 9, .ignore_eos = true}}
  );

  EXPECT_FALSE(Checker().Check(*sequence).has_value());
  EXPECT_THAT(Checker().EosIds(*sequence), IsEmpty());
}

TEST(StopChecker, StopsAtAnIgnoredEndOfSequenceThatTheRequestNamesAsStopToken) {
  const auto sequence = MakeSequence(
      {.prompt = {5},
       .generated = {2},
       .stopping = {.max_tokens = 9, .stop_token_ids = {2}, .ignore_eos = true}}
  );

  const auto match = Checker().Check(*sequence);

  ASSERT_TRUE(match.has_value());
  EXPECT_EQ(match->token_id, 2);
  EXPECT_FALSE(match->is_eos);
}

TEST(StopChecker, EndsAtMaxTokens) {
  const auto sequence =
      MakeSequence({.prompt = {5}, .generated = {7, 8}, .stopping = {.max_tokens = 2}});

  const auto match = Checker().Check(*sequence);

  ASSERT_TRUE(match.has_value());
  EXPECT_EQ(match->reason, FinishReason::kLength);
  EXPECT_FALSE(match->token_id.has_value());
}

TEST(StopChecker, CallsAStopTokenAtMaxTokensAStop) {
  const auto sequence =
      MakeSequence({.prompt = {5}, .generated = {7, 2}, .stopping = {.max_tokens = 2}});

  EXPECT_EQ(Checker().Check(*sequence)->reason, FinishReason::kStop);
}

TEST(StopChecker, EndsAtTheEndOfTheContext) {
  const auto sequence = MakeSequence(
      {.prompt = {5, 5, 5}, .generated = {7, 8}, .stopping = {.max_tokens = 9}, .context_tokens = 5}
  );

  const auto match = StopChecker({2}, 5).Check(*sequence);

  ASSERT_TRUE(match.has_value());
  EXPECT_EQ(match->reason, FinishReason::kLength);
}

TEST(StopChecker, MustGoOnUntilMinTokensAreThere) {
  SequenceSpec spec{
      .prompt = {5}, .generated = {7}, .stopping = {.max_tokens = 9, .min_tokens = 2}};

  EXPECT_TRUE(Checker().MustGoOn(*MakeSequence(spec)));

  spec.generated = {7, 7};

  EXPECT_FALSE(Checker().MustGoOn(*MakeSequence(spec)));
}

TEST(StopChecker, NamesTheEndOfSequenceIds) {
  EXPECT_THAT(Checker().EosIds(*MakeSequence({.prompt = {5}})), ElementsAre(2, 3));
}

}  // namespace
}  // namespace switchyard
