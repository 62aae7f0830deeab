#include <gmock/gmock.h>
#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <gtest/gtest.h>

#include <csignal>
#include <memory>
#include <string>

#include "switchyard/v1/inference.grpc.pb.h"
#include "tests/end_to_end/serve_process.h"
#include "tests/server/running_server.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tiny_model.h"

// The process around the server: signals, exit codes, log.

namespace switchyard {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

class ServeCommand : public ::testing::Test {
 protected:
  ServeCommand() {
    // A context that the model cannot fill before a test is over.
    const TinyModelOptions options{.context_tokens = 200'000};
    EXPECT_TRUE(WriteTinyJetMoe(folder_.path(), options).ok());
  }

  static std::unique_ptr<v1::InferenceService::Stub> Connect(ServeProcess& process) {
    return v1::InferenceService::NewStub(grpc::CreateChannel(
        Concat("127.0.0.1:", process.Port()), grpc::InsecureChannelCredentials()
    ));
  }

  static v1::GenerateRequest LongRequest() {
    v1::GenerateRequest request = ShortRequest(1000);
    request.mutable_prompt_tokens()->set_ids(0, 5);
    request.mutable_stopping()->set_ignore_eos(true);
    return request;
  }

  TemporaryFolder folder_;
};

TEST_F(ServeCommand, FinishesRunningStreamsAfterOneSignal) {
  ServeProcess process(folder_.path());
  const auto stub = Connect(process);
  ASSERT_NE(process.WaitForLog("event=ready"), "");
  grpc::ClientContext context;
  const auto reader = stub->Generate(&context, LongRequest());
  v1::GenerateResponse first;
  ASSERT_TRUE(reader->Read(&first));
  const auto already_read = static_cast<size_t>(first.delta().token_ids_size());

  process.Signal(SIGTERM);
  const Stream rest = ReadStream(*reader);

  EXPECT_TRUE(rest.status.ok()) << rest.status.error_message();
  EXPECT_EQ(rest.token_ids.size() + already_read, 1000U);
  EXPECT_THAT(rest.finished, SizeIs(1));
  EXPECT_EQ(process.Wait(), 0);
}

TEST_F(ServeCommand, EndsRunningStreamsAtTheSecondSignal) {
  ServeProcess process(folder_.path());
  const auto stub = Connect(process);
  ASSERT_NE(process.WaitForLog("event=ready"), "");
  grpc::ClientContext context;
  v1::GenerateRequest request = LongRequest();
  request.mutable_stopping()->set_max_tokens(190'000);
  const auto reader = stub->Generate(&context, request);
  v1::GenerateResponse first;
  ASSERT_TRUE(reader->Read(&first));

  process.Signal(SIGTERM);
  ASSERT_NE(process.WaitForLog("event=stopping"), "");
  process.Signal(SIGTERM);
  const Stream rest = ReadStream(*reader);

  EXPECT_EQ(rest.status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(process.Wait(), 0);
}

TEST_F(ServeCommand, SaysWhatIsWrongWithTheModelAndExitsWithOne) {
  const std::string weights = ReadWholeFile(folder_.path() / "model.safetensors");
  folder_.Write("model.safetensors", std::string_view(weights).substr(0, weights.size() / 2));
  ServeProcess process(folder_.path());

  const std::string line = process.WaitForLog("event=load_failed");

  EXPECT_THAT(line, HasSubstr("model.safetensors"));
  EXPECT_EQ(process.Wait(), 1);
}

}  // namespace
}  // namespace switchyard
