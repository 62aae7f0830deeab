#include "base/status.h"

#include <gtest/gtest.h>

namespace switchyard {
namespace {

StatusOr<int> Half(int number) {
  if (number % 2 != 0) {
    return InvalidArgument("number is ", number, "; give an even one");
  }
  return number / 2;
}

StatusOr<int> Quarter(int number) {
  ASSIGN_OR_RETURN(const int half, Half(number));
  ASSIGN_OR_RETURN(const int quarter, Half(half));
  return quarter;
}

TEST(Status, MessageIsJoinedFromItsParts) {
  const Status status = InvalidArgument("prompt has ", 9120, " tokens; this model takes ", 8192);

  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(MessageOf(status), "prompt has 9120 tokens; this model takes 8192");
}

TEST(Status, ContextGoesInFrontAndKeepsTheCode) {
  const Status status = WithContext(DataLoss("tensor a is missing"), "model.safetensors");

  EXPECT_EQ(status.code(), StatusCode::kDataLoss);
  EXPECT_EQ(MessageOf(status), "model.safetensors: tensor a is missing");
}

TEST(Status, ContextLeavesOkAlone) {
  EXPECT_TRUE(WithContext(OkStatus(), "anything").ok());
}

TEST(Status, AssignOrReturnPassesValuesOn) {
  EXPECT_EQ(*Quarter(12), 3);
}

TEST(Status, AssignOrReturnReturnsTheFirstError) {
  const StatusOr<int> quarter = Quarter(6);

  ASSERT_FALSE(quarter.ok());
  EXPECT_EQ(MessageOf(quarter.status()), "number is 3; give an even one");
}

}  // namespace
}  // namespace switchyard
