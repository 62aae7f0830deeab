#include "server/call/grpc_status.h"

#include <gtest/gtest.h>

#include "server/call/retry_info.h"
#include "server/validation/field_violation.h"
#include "switchyard/v1/error_details.pb.h"

namespace switchyard {
namespace {

TEST(GrpcStatus, KeepsCodeAndMessage) {
  const grpc::Status status = ToGrpcStatus(ResourceExhausted("the queue is full"));

  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(status.error_message(), "the queue is full");
  EXPECT_EQ(status.error_details(), "");
}

TEST(GrpcStatus, NeverSaysUnknown) {
  const Status unknown(StatusCode::kUnknown, "what");

  EXPECT_EQ(ToGrpcStatus(unknown).error_code(), grpc::StatusCode::INTERNAL);
}

TEST(GrpcStatus, CarriesTheFieldOfAViolation) {
  const grpc::Status status = ToGrpcStatus(FieldViolation("sampling.top_p", "is 2; it must be 1"));

  EXPECT_EQ(status.error_message(), "sampling.top_p is 2; it must be 1");
  v1::ErrorStatus details;
  ASSERT_TRUE(details.ParseFromString(status.error_details()));
  EXPECT_EQ(details.code(), 3);
  EXPECT_EQ(details.message(), status.error_message());
  ASSERT_EQ(details.details_size(), 1);
  EXPECT_EQ(details.details(0).type_url(), "type.googleapis.com/google.rpc.BadRequest");
  v1::BadRequest bad_request;
  ASSERT_TRUE(bad_request.ParseFromString(details.details(0).value()));
  EXPECT_EQ(bad_request.field_violations(0).field(), "sampling.top_p");
  EXPECT_EQ(bad_request.field_violations(0).description(), "is 2; it must be 1");
}

TEST(GrpcStatus, CarriesWhenToComeAgain) {
  const grpc::Status status =
      ToGrpcStatus(WithRetryDelay(ResourceExhausted("full"), std::chrono::milliseconds(2300)));

  v1::ErrorStatus details;
  ASSERT_TRUE(details.ParseFromString(status.error_details()));
  EXPECT_EQ(details.code(), 8);
  ASSERT_EQ(details.details_size(), 1);
  EXPECT_EQ(details.details(0).type_url(), "type.googleapis.com/google.rpc.RetryInfo");
  v1::RetryInfo retry;
  ASSERT_TRUE(retry.ParseFromString(details.details(0).value()));
  EXPECT_EQ(retry.retry_delay().seconds(), 2);
  EXPECT_EQ(retry.retry_delay().nanos(), 300'000'000);
}

}  // namespace
}  // namespace switchyard
