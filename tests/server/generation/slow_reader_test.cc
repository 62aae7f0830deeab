#include <gmock/gmock.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "tests/server/hand_clock.h"
#include "tests/server/running_server.h"

// Clients that do not read. Pieces of half a MiB fill whatever gRPC and the sockets hold for them.

namespace switchyard {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Lt;
using ::testing::SizeIs;

constexpr int32_t kManyTokens = 60;

class SlowReader : public ::testing::Test {
 protected:
  void Start(int64_t outbox_bytes, size_t piece_bytes = 512 << 10) {
    ServerOptions options;
    options.listen_address = "127.0.0.1:0";
    options.serving.outbox_bytes = outbox_bytes;
    options.serving.stall_timeout = seconds(30);
    options.serving.now = [this] { return clock_.Now(); };
    server_ = std::make_unique<RunningServer>(options);
    engine_ = &server_->SetReady({258}, {std::string(piece_bytes, 'a')});
    // Takes deltas of any size: without a bound of the outbox they are as large as what piled up.
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(-1);
    inference_ = v1::InferenceService::NewStub(grpc::CreateCustomChannel(
        Concat("127.0.0.1:", server_->server().port()),
        grpc::InsecureChannelCredentials(),
        arguments
    ));
  }

  v1::GetLoadResponse Load() {
    v1::GetLoadResponse load;
    grpc::ClientContext context;
    EXPECT_TRUE(inference_->GetLoad(&context, {}, &load).ok());
    return load;
  }

  void PassStallTimeout() {
    clock_.Advance(seconds(30));
    server_->server().Tick();
  }

  HandClock clock_;
  std::unique_ptr<RunningServer> server_;
  std::unique_ptr<v1::InferenceService::Stub> inference_;
  FakeEngine* engine_ = nullptr;
};

TEST_F(SlowReader, IsEndedAfterTheStallTimeoutAndToldWhyWhenItReadsAgain) {
  Start(INT64_MAX);
  engine_->HoldAfter(kManyTokens - 1);
  grpc::ClientContext context;
  const auto reader = inference_->Generate(&context, ShortRequest(kManyTokens));
  engine_->WaitUntilSubmitted(1);

  while (Load().stalls_total() == 0) {
    PassStallTimeout();
  }
  engine_->WaitUntilIdle();
  const Stream stream = ReadStream(*reader);

  EXPECT_EQ(stream.status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(
      stream.status.error_message(), AllOf(HasSubstr("30 seconds"), HasSubstr("--stall-timeout"))
  );
  EXPECT_THAT(stream.token_ids, SizeIs(Lt(kManyTokens)));
  EXPECT_THAT(stream.finished, IsEmpty());
}

TEST_F(SlowReader, IsResetWhenItNeverReadsAgain) {
  // More than gRPC and the sockets hold: no write is done before the client reads.
  Start(INT64_MAX, 24 << 20);
  grpc::ClientContext context;
  const auto reader = inference_->Generate(&context, ShortRequest(1));
  engine_->WaitUntilSubmitted(1);

  while (Load().open_streams() > 0) {
    PassStallTimeout();
  }

  EXPECT_EQ(Load().stalls_total(), 1);
  EXPECT_EQ(ReadStream(*reader).status.error_code(), grpc::StatusCode::CANCELLED);
}

TEST_F(SlowReader, HoldsUpNobodyOnTheSameConnection) {
  Start(INT64_MAX);
  grpc::ClientContext context;
  const auto reader = inference_->Generate(&context, ShortRequest(kManyTokens));
  engine_->WaitUntilSubmitted(1);

  const Stream other = Generate(*inference_, ShortRequest(3));

  EXPECT_TRUE(other.status.ok()) << other.status.error_message();
  EXPECT_THAT(other.token_ids, SizeIs(3));
  EXPECT_EQ(Load().stalls_total(), 0);
  EXPECT_THAT(ReadStream(*reader).token_ids, SizeIs(kManyTokens));
}

TEST_F(SlowReader, IsEndedWhenItsOutboxIsFull) {
  Start(1 << 20);
  grpc::ClientContext context;
  const auto reader = inference_->Generate(&context, ShortRequest(kManyTokens));
  engine_->WaitUntilSubmitted(1);

  engine_->WaitUntilIdle();
  const Stream stream = ReadStream(*reader);

  EXPECT_EQ(stream.status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(
      stream.status.error_message(), AllOf(HasSubstr("1048576 bytes"), HasSubstr("--outbox-bytes"))
  );
  EXPECT_THAT(stream.token_ids, SizeIs(Lt(kManyTokens)));
  EXPECT_EQ(Load().stalls_total(), 1);
}

TEST_F(SlowReader, KeepsItsStreamWhenItReadsInTime) {
  Start(INT64_MAX);
  grpc::ClientContext context;
  const auto reader = inference_->Generate(&context, ShortRequest(kManyTokens));
  engine_->WaitUntilSubmitted(1);
  engine_->WaitUntilIdle();

  clock_.Advance(milliseconds(29'999));
  server_->server().Tick();

  EXPECT_THAT(ReadStream(*reader).token_ids, SizeIs(kManyTokens));
  EXPECT_EQ(Load().stalls_total(), 0);
}

TEST_F(SlowReader, IsLetGoWhenItLeavesWithSeveralEventsBehindTheOneInFlight) {
  Start(INT64_MAX, 128 << 10);
  v1::GenerateRequest request = ShortRequest(2);
  request.set_n(16);
  for (int i = 0; i < 5; ++i) {
    engine_->HoldAfter(1);
    grpc::ClientContext context;
    const auto reader = inference_->Generate(&context, request);
    engine_->WaitUntilSubmitted(i + 1);

    context.TryCancel();
    engine_->WaitUntilIdle();

    EXPECT_EQ(ReadStream(*reader).status.error_code(), grpc::StatusCode::CANCELLED);
    // Ends only when every stream does.
    while (Load().open_streams() > 0) {
    }
  }
}

TEST_F(SlowReader, GetsNoAnswerThatIsLargerThanAMessageMayBe) {
  ServerOptions options;
  options.listen_address = "127.0.0.1:0";
  options.connections.max_send_message_bytes = 1 << 20;
  RunningServer server(options);
  FakeEngine& engine = server.SetReady({258}, {std::string(512 << 10, 'a')});
  v1::GenerateOnceResponse response;
  grpc::ClientContext context;

  const grpc::Status status =
      server.inference().GenerateOnce(&context, ShortRequest(kManyTokens), &response);

  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(status.error_message(), HasSubstr("over 1048576 bytes"));
  EXPECT_THAT(status.error_message(), HasSubstr("use Generate"));
  engine.WaitUntilIdle();
}

}  // namespace
}  // namespace switchyard
