#include "server/generation/open_streams.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <thread>

namespace switchyard {
namespace {

using ::testing::HasSubstr;

// Closes itself at the first tick.
class TickedStream final : public OpenStream {
 public:
  explicit TickedStream(OpenStreams& streams) : streams_(streams) {}
  void OnTick(Clock::time_point now) override {
    ticked_at = now;
    streams_.Close(*this);
  }

  Clock::time_point ticked_at;

 private:
  OpenStreams& streams_;
};

class OpenStreamsTest : public ::testing::Test {
 protected:
  std::shared_ptr<TickedStream> Open() {
    auto stream = std::make_shared<TickedStream>(streams_);
    EXPECT_TRUE(streams_.Open(stream).ok());
    return stream;
  }

  OpenStreams streams_{2};
};

TEST_F(OpenStreamsTest, RefusesOneTooManyUntilAnotherIsClosed) {
  const auto first = Open();
  const auto second = Open();
  const auto third = std::make_shared<TickedStream>(streams_);

  const Status refused = streams_.Open(third);
  streams_.Close(*first);

  EXPECT_EQ(refused.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(MessageOf(refused), HasSubstr("2 streams are open; this server takes 2"));
  EXPECT_TRUE(streams_.Open(third).ok());
}

TEST_F(OpenStreamsTest, IgnoresTheEndOfAStreamThatItRefused) {
  const auto open = Open();
  const TickedStream refused(streams_);

  streams_.Close(refused);

  EXPECT_EQ(streams_.Count(), 1);
}

TEST_F(OpenStreamsTest, TellsEveryOpenStreamTheTime) {
  const auto first = Open();
  const auto second = Open();
  const Clock::time_point now(std::chrono::seconds(7));

  streams_.Tick(now);

  EXPECT_EQ(first->ticked_at, now);
  EXPECT_EQ(second->ticked_at, now);
  EXPECT_EQ(streams_.Count(), 0);
}

TEST_F(OpenStreamsTest, WaitsUntilTheLastIsClosed) {
  const auto stream = Open();
  std::thread other([&] { streams_.Close(*stream); });

  EXPECT_EQ(streams_.WaitUntilNone(Clock::time_point::max()), 0);
  other.join();
}

TEST_F(OpenStreamsTest, DoesNotWaitPastTheDeadline) {
  const auto stream = Open();

  EXPECT_EQ(streams_.WaitUntilNone(Clock::now()), 1);
}

TEST_F(OpenStreamsTest, GivesUpWaitingWhenTold) {
  const auto stream = Open();
  std::thread other([&] { streams_.StopWaiting(); });

  EXPECT_EQ(streams_.WaitUntilNone(Clock::time_point::max()), 1);
  other.join();
}

}  // namespace
}  // namespace switchyard
