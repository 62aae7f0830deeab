#include "kernels/backend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace switchyard {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(MakeOps, MakesTheReferenceByName) {
  const StatusOr<std::unique_ptr<Ops>> ops = MakeOps({.device = "reference"});

  ASSERT_TRUE(ops.ok()) << ops.status();
  EXPECT_STREQ((*ops)->Name(), "reference");
}

TEST(MakeOps, TakesTheFirstDeviceOnAuto) {
  const StatusOr<std::unique_ptr<Ops>> ops = MakeOps({.device = "auto", .threads = 1});

  ASSERT_TRUE(ops.ok()) << ops.status();
  EXPECT_STREQ((*ops)->Name(), "cuda");
}

TEST(MakeOps, TakesADeviceByItsNumber) {
  EXPECT_STREQ((*MakeOps({.device = "cuda"}))->Name(), "cuda");
  EXPECT_STREQ((*MakeOps({.device = "cuda:0"}))->Name(), "cuda");
}

TEST(MakeOps, SaysWhichDeviceIsNotThere) {
  const Status status = MakeOps({.device = "cuda:97"}).status();

  EXPECT_EQ(status.code(), StatusCode::kUnavailable);
  EXPECT_THAT(MessageOf(status), HasSubstr("97"));
}

TEST(MakeOps, RefusesANumberThatIsNone) {
  for (const char* device :
       {"cuda:", "cuda:x", "cuda:-1", "cuda:0x", "cuda0", "cuda:99999999999"}) {
    EXPECT_EQ(MakeOps({.device = device}).status().code(), StatusCode::kInvalidArgument) << device;
    EXPECT_FALSE(IsDeviceName(device)) << device;
  }
}

TEST(MakeOps, NamesTheUnknownDeviceAndTheKnownOnes) {
  const Status status = MakeOps({.device = "gpu7"}).status();

  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(
      MessageOf(status),
      AllOf(HasSubstr("gpu7"), HasSubstr("auto"), HasSubstr("cpu"), HasSubstr("reference"))
  );
}

TEST(MakeOps, RefusesANegativeNumberOfThreads) {
  const Status status = MakeOps({.device = "reference", .threads = -1}).status();

  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(MessageOf(status), AllOf(HasSubstr("-1"), HasSubstr("1024")));
}

TEST(MakeOps, TakesAtMost1024Threads) {
  EXPECT_TRUE(MakeOps({.device = "reference", .threads = 1024}).ok());

  const Status status = MakeOps({.device = "reference", .threads = 1025}).status();

  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(MessageOf(status), HasSubstr("1025"));
}

}  // namespace
}  // namespace switchyard
