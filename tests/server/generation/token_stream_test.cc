#include "server/generation/token_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/server/fake_tokenizer.h"

namespace switchyard {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TokenEvent Token(int32_t id) {
  TokenEvent event;
  event.id = id;
  event.logprob = -1.5F;
  return event;
}

FinishEvent Ended(FinishReason reason) {
  FinishEvent event;
  event.reason = reason;
  return event;
}

// Of a stream of one completion.
v1::Delta TheDelta(const TokenStream::Taken& taken) {
  return taken.parts.empty() ? v1::Delta() : taken.parts[0].delta;
}

class TokenStreamTest : public ::testing::Test {
 protected:
  TokenStream Make(TokenStreamOptions options) {
    return TokenStream(&tokenizer_, std::move(options), [this] { ++wakes_; });
  }

  FakeTokenizer tokenizer_{{"EN", "D"}};
  int wakes_ = 0;
};

TEST_F(TokenStreamTest, TakesAllThatCameSinceTheLastTakeAsOneDelta) {
  TokenStream stream = Make({});
  stream.OnToken(Token('a'));
  stream.OnToken(Token('b'));
  const TokenStream::Taken first = stream.Take();
  stream.OnToken(Token('c'));

  const TokenStream::Taken second = stream.Take();

  EXPECT_EQ(TheDelta(first).text(), "ab");
  EXPECT_THAT(TheDelta(first).token_ids(), ElementsAre('a', 'b'));
  EXPECT_EQ(TheDelta(second).text(), "c");
  EXPECT_THAT(TheDelta(second).token_ids(), ElementsAre('c'));
  EXPECT_THAT(second.ends, IsEmpty());
}

TEST_F(TokenStreamTest, WakesOnceUntilSomethingIsTaken) {
  TokenStream stream = Make({});

  stream.OnToken(Token('a'));
  stream.OnToken(Token('b'));
  EXPECT_EQ(wakes_, 1);
  stream.Take();
  stream.OnToken(Token('c'));
  EXPECT_EQ(wakes_, 2);
}

TEST_F(TokenStreamTest, WakesOnlyAtTheEndWhenAskedTo) {
  TokenStream stream = Make({.text = {}, .wake_when = WakeWhen::kFinished});

  stream.OnToken(Token('a'));
  EXPECT_EQ(wakes_, 0);
  stream.OnFinished(Ended(FinishReason::kLength));
  EXPECT_EQ(wakes_, 1);
}

TEST_F(TokenStreamTest, AsksTheEngineToStopWhenAStopStringIsComplete) {
  TokenStream stream = Make({.text = {.stop_strings = {"END"}}});

  EXPECT_EQ(stream.OnToken(Token(FakeTokenizer::kFirstPiece)), Verdict::kContinue);
  EXPECT_EQ(stream.OnToken(Token(FakeTokenizer::kFirstPiece + 1)), Verdict::kStop);
  stream.OnFinished(Ended(FinishReason::kStop));

  const TokenStream::Taken taken = stream.Take();
  EXPECT_EQ(TheDelta(taken).text(), "");
  EXPECT_EQ(taken.ends.at(0).matched_stop, "END");
}

TEST_F(TokenStreamTest, ReleasesWhatItHeldWhenTheCompletionEnds) {
  TokenStream stream = Make({.text = {.stop_strings = {"END"}}});
  stream.OnToken(Token(FakeTokenizer::kFirstPiece));
  stream.OnFinished(Ended(FinishReason::kLength));

  EXPECT_EQ(TheDelta(stream.Take()).text(), "EN");
}

TEST_F(TokenStreamTest, GivesTheIdOfAStopTokenButNotItsText) {
  TokenStream stream = Make({});
  TokenEvent stop = Token('x');
  stop.is_stop_token = true;
  stream.OnToken(stop);

  const TokenStream::Taken taken = stream.Take();

  EXPECT_EQ(TheDelta(taken).text(), "");
  EXPECT_THAT(TheDelta(taken).token_ids(), ElementsAre('x'));
}

TEST_F(TokenStreamTest, AsksTheEngineToStopWhenMoreWaitsThanMayBe) {
  // A token of one letter takes 3 bytes for its id and one for its text.
  TokenStream stream = Make({.text = {}, .max_bytes = 8});
  EXPECT_EQ(stream.OnToken(Token('a')), Verdict::kContinue);
  EXPECT_EQ(stream.OnToken(Token('b')), Verdict::kContinue);
  EXPECT_EQ(stream.OnToken(Token('c')), Verdict::kStop);
  stream.OnFinished(Ended(FinishReason::kStop));

  const TokenStream::Taken taken = stream.Take();

  EXPECT_EQ(TheDelta(taken).text(), "abc");
  EXPECT_TRUE(taken.overflowed);
}

TEST_F(TokenStreamTest, HasRoomAgainWhenItsTokensAreTaken) {
  TokenStream stream = Make({.text = {}, .max_bytes = 4});
  stream.OnToken(Token('a'));
  stream.Take();

  EXPECT_EQ(stream.OnToken(Token('b')), Verdict::kContinue);
  stream.OnFinished(Ended(FinishReason::kLength));
  EXPECT_FALSE(stream.Take().overflowed);
}

TEST_F(TokenStreamTest, CountsLogprobsAsWhatWaits) {
  // 4 as without them, 4 for the field, and 12 for id, logprob and bytes of the chosen token.
  TokenStream enough = Make({.text = {}, .wants_logprobs = true, .max_bytes = 20});
  TokenStream too_little = Make({.text = {}, .wants_logprobs = true, .max_bytes = 19});

  EXPECT_EQ(enough.OnToken(Token('a')), Verdict::kContinue);
  EXPECT_EQ(too_little.OnToken(Token('a')), Verdict::kStop);
}

TEST_F(TokenStreamTest, KeepsThePromptsPlaceUntilTheFirstToken) {
  PromptQueue queue(100, Clock::now);
  TokenStream stream = Make({});
  stream.KeepPlace(*queue.Enter(7));
  EXPECT_EQ(queue.Tokens(), 7);

  stream.OnToken(Token('a'));

  EXPECT_EQ(queue.Tokens(), 0);
}

TEST_F(TokenStreamTest, KeepsThePromptsPlaceUntilAnEndWithoutATokenToo) {
  PromptQueue queue(100, Clock::now);
  TokenStream stream = Make({});
  stream.KeepPlace(*queue.Enter(7));

  stream.OnFinished(Ended(FinishReason::kCancelled));

  EXPECT_EQ(queue.Tokens(), 0);
}

TEST_F(TokenStreamTest, GivesTheFinishEventOnce) {
  TokenStream stream = Make({});
  stream.OnFinished(Ended(FinishReason::kLength));

  EXPECT_EQ(stream.Take().ends.size(), 1);
  EXPECT_THAT(stream.Take().ends, IsEmpty());
}

TEST_F(TokenStreamTest, GivesOneLogprobForEachTokenWithItsBytes) {
  TokenStream stream = Make({.text = {}, .wants_logprobs = true});
  const std::vector<TokenLogprobValue> top = {{.id = 0xE2, .logprob = -0.25F}};
  TokenEvent event = Token('a');
  event.top = top;
  stream.OnToken(event);

  const v1::Delta delta = TheDelta(stream.Take());

  ASSERT_EQ(delta.logprobs_size(), 1);
  EXPECT_EQ(delta.logprobs(0).chosen().token(), "a");
  EXPECT_EQ(delta.logprobs(0).chosen().logprob(), -1.5F);
  ASSERT_EQ(delta.logprobs(0).top_size(), 1);
  EXPECT_EQ(delta.logprobs(0).top(0).token_id(), 0xE2);
  EXPECT_EQ(delta.logprobs(0).top(0).token(), "\xE2");
}

TEST_F(TokenStreamTest, GivesNoLogprobsUnasked) {
  TokenStream stream = Make({});
  stream.OnToken(Token('a'));

  EXPECT_THAT(TheDelta(stream.Take()).logprobs(), IsEmpty());
}

}  // namespace
}  // namespace switchyard
