#include "server/call/peer_streams.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace switchyard {
namespace {

constexpr PeerLimitNames kNames = {.peer = "host", .streams = "calls", .flag = "--calls-of-a-host"};

TEST(PeerStreams, TakesAsManyAsTheLimitAndNamesItBeyond) {
  PeerStreams streams(3, kNames);
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(streams.Enter("a").ok());
  }

  const Status fourth = streams.Enter("a");

  EXPECT_EQ(fourth.code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(
      MessageOf(fourth),
      "this host has 3 calls open; this server takes 3 of one host (--calls-of-a-host); try again "
      "when one has ended"
  );
}

TEST(PeerStreams, GivesBackWhatHasLeft) {
  PeerStreams streams(1, kNames);
  ASSERT_TRUE(streams.Enter("a").ok());
  ASSERT_FALSE(streams.Enter("a").ok());

  streams.Leave("a");

  EXPECT_TRUE(streams.Enter("a").ok());
  EXPECT_FALSE(streams.Enter("a").ok());
}

TEST(PeerStreams, CountsEachPeerByItself) {
  PeerStreams streams(1, kNames);
  ASSERT_TRUE(streams.Enter("a").ok());

  EXPECT_TRUE(streams.Enter("b").ok());
  EXPECT_FALSE(streams.Enter("a").ok());
}

TEST(PeerStreams, TakesAnyNumberWithoutALimit) {
  PeerStreams streams(0, kNames);
  for (int i = 0; i < 5000; ++i) {
    EXPECT_TRUE(streams.Enter("a").ok());
  }
}

TEST(HostOfPeer, LeavesThePortOut) {
  EXPECT_EQ(HostOfPeer("ipv4:10.0.0.7:50122"), "ipv4:10.0.0.7");
  EXPECT_EQ(HostOfPeer("ipv6:[2001:db8::1]:50122"), "ipv6:[2001:db8::1]");
  EXPECT_EQ(HostOfPeer("unix:/run/switchyard"), "unix:/run/switchyard");
}

}  // namespace
}  // namespace switchyard
