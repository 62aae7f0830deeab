#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "server/generation/token_stream.h"
#include "tests/server/fake_tokenizer.h"

// Several completions of one request, and tokens that are scored instead of generated.

namespace switchyard {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TokenEvent Token(int32_t completion, int32_t id, float logprob = -1) {
  TokenEvent event;
  event.completion = completion;
  event.id = id;
  event.logprob = logprob;
  return event;
}

FinishEvent Ended(int32_t completion, FinishReason reason = FinishReason::kLength) {
  FinishEvent event;
  event.completion = completion;
  event.reason = reason;
  return event;
}

class TokenStreamOfCompletions : public ::testing::Test {
 protected:
  TokenStream Make(TokenStreamOptions options) {
    return TokenStream(&tokenizer_, std::move(options), [this] { ++wakes_; });
  }

  FakeTokenizer tokenizer_{{"EN", "D"}};
  int wakes_ = 0;
};

TEST_F(TokenStreamOfCompletions, KeepsTheirTokensApart) {
  TokenStream stream = Make({.text = {}, .completions = 3});
  stream.OnToken(Token(2, 'x'));
  stream.OnToken(Token(0, 'a'));
  stream.OnToken(Token(2, 'y'));

  const TokenStream::Taken taken = stream.Take();

  ASSERT_THAT(taken.parts, SizeIs(2));
  EXPECT_EQ(taken.parts[0].delta.completion(), 0);
  EXPECT_EQ(taken.parts[0].delta.text(), "a");
  EXPECT_EQ(taken.parts[1].delta.completion(), 2);
  EXPECT_EQ(taken.parts[1].delta.text(), "xy");
  EXPECT_EQ(wakes_, 1);
}

TEST_F(TokenStreamOfCompletions, NumbersTheirDeltasAfterTheFirstTakeToo) {
  TokenStream stream = Make({.text = {}, .completions = 2});
  stream.OnToken(Token(1, 'x'));
  stream.Take();
  stream.OnToken(Token(1, 'y'));

  const TokenStream::Taken taken = stream.Take();

  ASSERT_THAT(taken.parts, SizeIs(1));
  EXPECT_EQ(taken.parts[0].delta.completion(), 1);
}

TEST_F(TokenStreamOfCompletions, EndsWithTheLastOfThemInTheirOrder) {
  TokenStream stream = Make({.text = {}, .completions = 2});
  stream.OnToken(Token(1, 'x', -2));
  stream.OnFinished(Ended(1));
  EXPECT_THAT(stream.Take().ends, IsEmpty());
  stream.OnToken(Token(0, 'a', -1));
  stream.OnToken(Token(0, 'b', -0.5F));
  stream.OnFinished(Ended(0));

  const TokenStream::Taken taken = stream.Take();

  ASSERT_THAT(taken.ends, SizeIs(2));
  EXPECT_EQ(taken.ends[0].logprob_sum, -1.5);
  EXPECT_EQ(taken.ends[1].logprob_sum, -2);
  EXPECT_THAT(stream.Take().ends, IsEmpty());
}

TEST_F(TokenStreamOfCompletions, StopsTheOneWhoseStopStringIsCompleteAlone) {
  TokenStream stream = Make({.text = {.stop_strings = {"b"}}, .completions = 2});

  EXPECT_EQ(stream.OnToken(Token(1, 'b')), Verdict::kStop);
  stream.OnFinished(Ended(1, FinishReason::kStop));
  EXPECT_EQ(stream.OnToken(Token(0, 'a')), Verdict::kContinue);
  stream.OnFinished(Ended(0));

  const TokenStream::Taken taken = stream.Take();
  ASSERT_THAT(taken.ends, SizeIs(2));
  EXPECT_EQ(taken.ends[0].matched_stop, std::nullopt);
  EXPECT_EQ(taken.ends[1].matched_stop, "b");
}

TEST_F(TokenStreamOfCompletions, EndsAllOfThemWithTheFirstThatFails) {
  TokenStream stream = Make({.text = {}, .completions = 3});
  stream.OnFinished(Ended(0));
  FinishEvent failed = Ended(2, FinishReason::kError);
  failed.status = Internal("not finite");
  stream.OnToken(Token(1, 'a'));
  stream.OnFinished(failed);

  EXPECT_EQ(stream.OnToken(Token(1, 'b')), Verdict::kStop);
  const TokenStream::Taken taken = stream.Take();
  stream.OnFinished(Ended(1, FinishReason::kCancelled));

  ASSERT_THAT(taken.ends, SizeIs(1));
  EXPECT_EQ(taken.ends[0].event.status.code(), StatusCode::kInternal);
  ASSERT_THAT(taken.parts, SizeIs(1));
  EXPECT_EQ(taken.parts[0].delta.text(), "a");
  EXPECT_THAT(stream.Take().ends, IsEmpty());
}

TEST_F(TokenStreamOfCompletions, TellsTheCachedTokensOfTheOneThatComputedThePrompt) {
  TokenStream stream = Make({.text = {}, .completions = 2});
  FinishEvent second = Ended(1);
  second.cached_prompt_tokens = 32;
  stream.OnFinished(second);
  FinishEvent first = Ended(0);
  first.cached_prompt_tokens = 16;
  stream.OnFinished(first);

  EXPECT_EQ(stream.Take().cached_prompt_tokens, 16);
}

// Means of -2, -0.5, -1 and -0.5: the second is the best, and of equals the first.
void MakeFour(TokenStream& stream) {
  stream.OnToken(Token(0, 'a', -2));
  stream.OnToken(Token(1, 'b', -0.5F));
  stream.OnToken(Token(2, 'c', -0.25F));
  stream.OnToken(Token(2, 'd', -1.75F));
  stream.OnToken(Token(3, 'e', -0.5F));
  for (const int32_t completion : {3, 0, 2}) {
    stream.OnFinished(Ended(completion));
  }
}

TEST_F(TokenStreamOfCompletions, GivesNothingBeforeTheBestAreKnown) {
  TokenStream stream = Make({.text = {}, .completions = 4, .best = 3});

  MakeFour(stream);

  EXPECT_EQ(wakes_, 0);
  EXPECT_THAT(stream.Take().parts, IsEmpty());
  stream.OnFinished(Ended(1));
  EXPECT_EQ(wakes_, 1);
}

TEST_F(TokenStreamOfCompletions, GivesTheBestByMeanLogprobTheBestFirst) {
  TokenStream stream = Make({.text = {}, .completions = 4, .best = 3});
  MakeFour(stream);
  stream.OnFinished(Ended(1));

  const TokenStream::Taken taken = stream.Take();

  ASSERT_THAT(taken.parts, SizeIs(3));
  EXPECT_EQ(taken.parts[0].delta.text(), "b");
  EXPECT_EQ(taken.parts[1].delta.text(), "e");
  EXPECT_EQ(taken.parts[2].delta.text(), "cd");
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(taken.parts[static_cast<size_t>(i)].delta.completion(), i);
  }
  ASSERT_THAT(taken.ends, SizeIs(3));
  EXPECT_EQ(taken.ends[0].event.completion, 1);
  EXPECT_EQ(taken.ends[2].logprob_sum, -2);
}

TEST_F(TokenStreamOfCompletions, GivesNothingOfCandidatesWhenOneFails) {
  TokenStream stream = Make({.text = {}, .completions = 4, .best = 1});
  MakeFour(stream);
  stream.OnFinished(Ended(1, FinishReason::kDeadline));

  const TokenStream::Taken taken = stream.Take();

  EXPECT_THAT(taken.parts, IsEmpty());
  ASSERT_THAT(taken.ends, SizeIs(1));
  EXPECT_EQ(taken.ends[0].event.reason, FinishReason::kDeadline);
}

TEST_F(TokenStreamOfCompletions, CountsWhatWaitsOfAllOfThemTogether) {
  // Each token takes 3 bytes for its id and one for its text.
  TokenStream stream = Make({.text = {}, .completions = 2, .max_bytes = 8});

  EXPECT_EQ(stream.OnToken(Token(0, 'a')), Verdict::kContinue);
  EXPECT_EQ(stream.OnToken(Token(1, 'b')), Verdict::kContinue);
  EXPECT_EQ(stream.OnToken(Token(0, 'c')), Verdict::kStop);
  stream.OnFinished(Ended(0, FinishReason::kStop));

  EXPECT_TRUE(stream.Take().overflowed);
}

TEST_F(TokenStreamOfCompletions, TellsPromptTokensWithTheLikeliestThatWereAskedFor) {
  TokenStream stream = Make({.text = {}, .prompt_top_logprobs = 1});
  const std::vector<TokenLogprobValue> top = {
      {.id = 'z', .logprob = -0.25F}, {.id = 'p', .logprob = -3}};
  TokenEvent event = Token(0, 'p', -3);
  event.top = top;
  stream.OnPromptToken(event);

  const TokenStream::Taken taken = stream.Take();

  ASSERT_THAT(taken.parts, SizeIs(1));
  EXPECT_THAT(taken.parts[0].delta.token_ids(), IsEmpty());
  ASSERT_EQ(taken.parts[0].prompt.tokens_size(), 1);
  const v1::TokenLogprobs& token = taken.parts[0].prompt.tokens(0);
  EXPECT_EQ(token.chosen().token(), "p");
  EXPECT_EQ(token.chosen().logprob(), -3);
  ASSERT_EQ(token.top_size(), 1);
  EXPECT_EQ(token.top(0).token_id(), 'z');
}

TEST_F(TokenStreamOfCompletions, AddsPromptTokensToNoCompletionsSum) {
  TokenStream stream = Make({.text = {}});
  stream.OnPromptToken(Token(0, 'p', -7));
  stream.OnToken(Token(0, 'a', -0.5F));
  stream.OnFinished(Ended(0));

  const TokenStream::Taken taken = stream.Take();

  EXPECT_EQ(taken.ends.at(0).logprob_sum, -0.5);
  EXPECT_EQ(taken.ends.at(0).scored_logprob_sum, -7);
}

TEST_F(TokenStreamOfCompletions, RanksByGeneratedTokensAloneWhenThePromptIsScored) {
  TokenStream stream = Make({.text = {}, .completions = 2, .best = 1});
  stream.OnPromptToken(Token(0, 'p', -90));
  stream.OnToken(Token(0, 'a', -0.25F));
  stream.OnToken(Token(1, 'b', -0.5F));
  stream.OnFinished(Ended(0));
  stream.OnFinished(Ended(1));

  EXPECT_EQ(stream.Take().parts.at(0).delta.text(), "a");
}

TEST_F(TokenStreamOfCompletions, CallsAScoreGreedyOnlyIfEveryTokenWasTheLikeliest) {
  TokenStream stream = Make({.text = {}, .completions = 2, .wake_when = WakeWhen::kFinished});
  const std::vector<TokenLogprobValue> likeliest_a = {{.id = 'a', .logprob = -0.25F}};
  for (const int32_t completion : {0, 1}) {
    TokenEvent event = Token(completion, 'a', -0.25F);
    event.top = likeliest_a;
    stream.OnPromptToken(event);
  }
  TokenEvent unlikely = Token(1, 'b', -4);
  unlikely.top = likeliest_a;
  stream.OnPromptToken(unlikely);
  stream.OnFinished(Ended(0, FinishReason::kScored));
  EXPECT_EQ(wakes_, 0);
  stream.OnFinished(Ended(1, FinishReason::kScored));

  const TokenStream::Taken taken = stream.Take();

  EXPECT_EQ(wakes_, 1);
  ASSERT_THAT(taken.ends, SizeIs(2));
  EXPECT_TRUE(taken.ends[0].is_greedy);
  EXPECT_FALSE(taken.ends[1].is_greedy);
  EXPECT_EQ(taken.ends[1].scored_logprob_sum, -4.25);
}

TEST_F(TokenStreamOfCompletions, KeepsNoMorePromptTokensThanMayWait) {
  // 4 for the field and 12 for id, logprob and bytes of the token.
  TokenStream stream = Make({.text = {}, .max_bytes = 20});
  for (int i = 0; i < 100; ++i) {
    stream.OnPromptToken(Token(0, 'p'));
  }
  stream.OnFinished(Ended(0, FinishReason::kScored));

  const TokenStream::Taken taken = stream.Take();

  EXPECT_TRUE(taken.overflowed);
  EXPECT_EQ(taken.parts.at(0).prompt.tokens_size(), 2);
}

TEST_F(TokenStreamOfCompletions, KeepsThePlaceOfScoredTokensUntilAllAreScored) {
  PromptQueue queue(100, Clock::now);
  TokenStream stream = Make({.text = {}, .completions = 2});
  stream.KeepPlace(*queue.Enter(9));

  stream.OnFinished(Ended(0, FinishReason::kScored));
  EXPECT_EQ(queue.Tokens(), 9);
  stream.OnFinished(Ended(1, FinishReason::kScored));

  EXPECT_EQ(queue.Tokens(), 0);
}

}  // namespace
}  // namespace switchyard
