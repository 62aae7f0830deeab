#include "server/generation/request_registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace switchyard {
namespace {

using ::testing::HasSubstr;

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

}  // namespace
}  // namespace switchyard
