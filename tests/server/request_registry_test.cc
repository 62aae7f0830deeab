#include "server/request_registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>
#include <utility>

namespace switchyard {
namespace {

using ::testing::HasSubstr;

constexpr auto kForever = std::chrono::steady_clock::time_point::max();

TEST(RequestRegistry, RefusesAnIdThatIsActive) {
  RequestRegistry registry;
  const auto first = registry.Register("mine");
  const auto second = registry.Register("mine");

  EXPECT_TRUE(first.ok());
  EXPECT_EQ(second.status().code(), StatusCode::kAlreadyExists);
  EXPECT_THAT(MessageOf(second.status()), HasSubstr("\"mine\""));
}

TEST(RequestRegistry, TakesAnIdAgainAfterItsRelease) {
  RequestRegistry registry;
  auto first = registry.Register("mine");
  ASSERT_TRUE(first.ok());
  first->Release();

  EXPECT_TRUE(registry.Register("mine").ok());
}

TEST(RequestRegistry, MakesAnIdThatIsNotTaken) {
  RequestRegistry registry;
  const auto taken = registry.Register("request-1");
  const auto made = registry.Register("");

  ASSERT_TRUE(taken.ok() && made.ok());
  EXPECT_EQ(made->id(), "request-2");
}

TEST(RequestRegistry, WaitsUntilTheLastRequestIsGone) {
  RequestRegistry registry;
  auto request = registry.Register("");
  ASSERT_TRUE(request.ok());
  std::thread other([moved = *std::move(request)]() mutable { moved.Release(); });

  EXPECT_TRUE(registry.WaitUntilNone(kForever));
  other.join();
}

TEST(RequestRegistry, DoesNotWaitPastTheDeadline) {
  RequestRegistry registry;
  const auto request = registry.Register("");

  EXPECT_FALSE(registry.WaitUntilNone(std::chrono::steady_clock::now()));
}

TEST(RequestRegistry, GivesUpWaitingWhenTold) {
  RequestRegistry registry;
  const auto request = registry.Register("");
  std::thread other([&registry] { registry.StopWaiting(); });

  EXPECT_FALSE(registry.WaitUntilNone(kForever));
  other.join();
}

}  // namespace
}  // namespace switchyard
