#include "server/generation/message_bytes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "switchyard/v1/inference.pb.h"

namespace switchyard {
namespace {

using ::testing::HasSubstr;

grpc::ByteBuffer Bytes(const std::string& bytes) {
  const grpc::Slice slice(bytes);
  return grpc::ByteBuffer(&slice, 1);
}

TEST(MessageBytes, ReadsWhatItWrote) {
  v1::GenerateRequest request;
  request.set_prompt_text("grün");
  grpc::ByteBuffer bytes;
  ASSERT_TRUE(SerializeMessage(request, bytes).ok());

  v1::GenerateRequest read;
  ASSERT_TRUE(ParseMessage(bytes, read).ok());

  EXPECT_EQ(read.prompt_text(), "grün");
}

TEST(MessageBytes, NamesTheStringThatIsNoUtf8) {
  v1::GenerateRequest request;
  request.set_prompt_text("ab\xC3(");

  v1::GenerateRequest read;
  const Status status = ParseMessage(Bytes(request.SerializeAsString()), read);

  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(MessageOf(status), HasSubstr("prompt_text is not valid UTF-8 at byte 2"));
}

TEST(MessageBytes, NamesThePlaceOfAStringInsideAList) {
  v1::GenerateRequest request;
  request.set_prompt_text("fine");
  request.mutable_stopping()->add_stop_strings(std::string("fine"));
  request.mutable_stopping()->add_stop_strings(std::string("\xFF"));

  v1::GenerateRequest read;
  const Status status = ParseMessage(Bytes(request.SerializeAsString()), read);

  EXPECT_THAT(
      MessageOf(status), HasSubstr("stopping.stop_strings[1] is not valid UTF-8 at byte 0")
  );
}

TEST(MessageBytes, RefusesBytesThatAreNoMessage) {
  v1::GenerateRequest read;
  const Status status = ParseMessage(Bytes("\x0A\x7F"), read);

  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(MessageOf(status), HasSubstr("switchyard.v1.GenerateRequest"));
}

TEST(MessageBytes, TakesNoBytesForAMessageOfDefaults) {
  v1::GenerateRequest read;

  EXPECT_TRUE(ParseMessage(Bytes(""), read).ok());
}

}  // namespace
}  // namespace switchyard
