#include "server/generation/prompt_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "tests/server/hand_clock.h"

namespace switchyard {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;

class PromptQueueTest : public ::testing::Test {
 protected:
  PromptQueue::Place Enter(int64_t tokens) { return *queue_.Enter(tokens); }

  HandClock clock_;
  PromptQueue queue_{1000, [this] { return clock_.Now(); }};
};

TEST_F(PromptQueueTest, CountsTheTokensOfThosePromptsThatHoldAPlace) {
  const PromptQueue::Place first = Enter(300);
  PromptQueue::Place second = Enter(500);
  EXPECT_EQ(queue_.Tokens(), 800);

  second.Release();
  second.Release();

  EXPECT_EQ(queue_.Tokens(), 300);
}

TEST_F(PromptQueueTest, GivesAPlaceBackOnceHoweverOftenItMoved) {
  {
    PromptQueue::Place first = Enter(300);
    PromptQueue::Place second = std::move(first);
    first = std::move(second);
  }

  EXPECT_EQ(queue_.Tokens(), 0);
}

TEST_F(PromptQueueTest, RefusesATokenTooManyWithTheNumbers) {
  const PromptQueue::Place place = Enter(900);

  EXPECT_TRUE(queue_.Enter(100).ok());
  const Status refused = queue_.Enter(101).status();

  EXPECT_EQ(refused.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(MessageOf(refused), HasSubstr("900 prompt tokens are waiting"));
  EXPECT_THAT(MessageOf(refused), HasSubstr("has 101"));
  EXPECT_THAT(MessageOf(refused), HasSubstr("holds 1000"));
}

TEST_F(PromptQueueTest, TakesAPromptOfAnyLengthWhenItIsEmpty) {
  const StatusOr<PromptQueue::Place> place = queue_.Enter(50'000);

  EXPECT_TRUE(place.ok());
  EXPECT_FALSE(queue_.CheckRoom().ok());
}

TEST_F(PromptQueueTest, KnowsNoPaceBeforeTheFirstIsGone) {
  const PromptQueue::Place place = Enter(900);
  clock_.Advance(seconds(50));

  EXPECT_EQ(queue_.RetryDelay(), seconds(1));
}

TEST_F(PromptQueueTest, ExpectsHalfOfTheQueueToGoAtThePaceOfTheLatest) {
  PromptQueue::Place gone = Enter(200);
  const PromptQueue::Place stays = Enter(600);
  clock_.Advance(seconds(4));
  gone.Release();

  // 200 tokens in 4 seconds; 300 are half of what waits.
  EXPECT_EQ(queue_.RetryDelay(), seconds(6));
}

TEST_F(PromptQueueTest, ForgetsThePaceOfBeforeItWasLastEmpty) {
  PromptQueue::Place slow = Enter(100);
  clock_.Advance(seconds(1000));
  slow.Release();
  clock_.Advance(seconds(1000));
  PromptQueue::Place fast = Enter(100);
  const PromptQueue::Place stays = Enter(400);
  clock_.Advance(seconds(1));
  fast.Release();

  EXPECT_EQ(queue_.RetryDelay(), seconds(2));
}

TEST_F(PromptQueueTest, CountsOnlyTheLatest64) {
  const PromptQueue::Place stays = Enter(100);
  for (int i = 0; i < 65; ++i) {
    PromptQueue::Place place = Enter(10);
    clock_.Advance(i == 0 ? seconds(1000) : seconds(1));
    place.Release();
  }

  // 64 times 10 tokens in 64 seconds; 50 are half of what waits.
  EXPECT_EQ(queue_.RetryDelay(), seconds(5));
}

TEST_F(PromptQueueTest, NeverAsksForLessThanATenthOfASecondNorMoreThanAMinute) {
  PromptQueue::Place gone = Enter(900);
  const PromptQueue::Place stays = Enter(2);
  clock_.Advance(milliseconds(1));
  gone.Release();
  EXPECT_EQ(queue_.RetryDelay(), milliseconds(100));

  clock_.Advance(std::chrono::hours(100'000));
  EXPECT_EQ(queue_.RetryDelay(), seconds(60));
}

}  // namespace
}  // namespace switchyard
