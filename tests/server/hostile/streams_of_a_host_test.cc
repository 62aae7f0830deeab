#include <fcntl.h>
#include <gmock/gmock.h>
#include <grpcpp/create_channel_posix.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>

#include "tests/server/generic_call.h"
#include "tests/server/hostile/raw_connection.h"
#include "tests/server/running_server.h"
#include "tests/server/two_routers.h"

namespace switchyard {
namespace {

using ::testing::HasSubstr;

// What may be open of one host, whatever number of connections it has.
class StreamsOfAHost : public ::testing::Test {
 protected:
  void Start(int32_t max_streams_per_host) {
    ServerOptions options;
    options.listen_address = "127.0.0.1:0";
    options.serving.max_streams_per_host = max_streams_per_host;
    server_ = std::make_unique<RunningServer>(options);
    engine_ = &server_->SetReady({'a'});
  }

  // A connection of its own from that address.
  std::shared_ptr<grpc::Channel> ConnectedFrom(const char* address) {
    const int descriptor = ConnectFrom(address, server_->server().port());
    EXPECT_GE(descriptor, 0);
    fcntl(descriptor, F_SETFL, O_NONBLOCK);
    return grpc::CreateInsecureChannelFromFd("localhost", descriptor);
  }

  // A stream that stays open until the engine is released.
  class HeldStream {
   public:
    explicit HeldStream(v1::InferenceService::Stub& stub)
        : reader_(stub.Generate(&context_, ShortRequest(2))), was_taken_(reader_->Read(&first_)) {}
    bool WasTaken() const { return was_taken_; }
    grpc::Status End() { return ReadStream(*reader_).status; }

   private:
    grpc::ClientContext context_;
    std::unique_ptr<grpc::ClientReader<v1::GenerateResponse>> reader_;
    v1::GenerateResponse first_;
    bool was_taken_;
  };
  // A client may hear of an end before the server is through with it, and be refused until then.
  static std::unique_ptr<HeldStream> HoldWhenThereIsRoom(v1::InferenceService::Stub& stub) {
    auto stream = std::make_unique<HeldStream>(stub);
    while (!stream->WasTaken()) {
      stream->End();
      stream = std::make_unique<HeldStream>(stub);
    }
    return stream;
  }

  static grpc::Status GetLoad(v1::InferenceService::Stub& stub, v1::GetLoadResponse& load) {
    grpc::ClientContext context;
    return stub.GetLoad(&context, {}, &load);
  }
  static grpc::Status GetLoad(v1::InferenceService::Stub& stub) {
    v1::GetLoadResponse load;
    return GetLoad(stub, load);
  }
  // Returns when a call is taken again.
  static void WaitUntilTaken(v1::InferenceService::Stub& stub) {
    while (!GetLoad(stub).ok()) {
      std::this_thread::yield();
    }
  }

  std::unique_ptr<RunningServer> server_;
  FakeEngine* engine_ = nullptr;
};

TEST_F(StreamsOfAHost, AreCountedOverAllItsConnectionsAndNotAgainstOtherHosts) {
  Start(2);
  engine_->HoldAfter(1);
  v1::InferenceService::Stub first(ConnectedFrom("127.0.0.1"));
  v1::InferenceService::Stub second(ConnectedFrom("127.0.0.1"));
  v1::InferenceService::Stub other_host(ConnectedFrom("127.0.0.2"));
  HeldStream one(first);
  HeldStream two(second);
  ASSERT_TRUE(one.WasTaken() && two.WasTaken());

  for (v1::InferenceService::Stub* const stub : {&first, &second}) {
    const grpc::Status refused = Generate(*stub, ShortRequest(1)).status;
    EXPECT_EQ(refused.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
    EXPECT_EQ(
        refused.error_message(),
        "this host has 2 calls open; this server takes 2 of one host (--max-streams-per-host); try "
        "again when one has ended"
    );
    EXPECT_THAT(refused.error_details(), HasSubstr("google.rpc.RetryInfo"));
  }
  EXPECT_EQ(GetLoad(first).error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  v1::GetLoadResponse load;
  EXPECT_TRUE(GetLoad(other_host, load).ok());

  EXPECT_EQ(load.refusals_total().at("host_streams"), 3);
  EXPECT_EQ(load.open_streams(), 2);
  engine_->Release();
  EXPECT_TRUE(one.End().ok());
  EXPECT_TRUE(two.End().ok());
}

TEST_F(StreamsOfAHost, GiveTheirPlacesBackWhenTheyEnd) {
  Start(2);
  v1::InferenceService::Stub stub(ConnectedFrom("127.0.0.1"));
  for (int round = 0; round < 3; ++round) {
    engine_->HoldAfter(1);
    const auto one = HoldWhenThereIsRoom(stub);
    const auto two = HoldWhenThereIsRoom(stub);
    EXPECT_FALSE(GetLoad(stub).ok());

    engine_->Release();
    EXPECT_TRUE(one->End().ok());
    EXPECT_TRUE(two->End().ok());
  }
}

TEST_F(StreamsOfAHost, GiveTheirPlacesBackWhenTheirConnectionBreaks) {
  Start(1);
  engine_->HoldAfter(1);
  v1::InferenceService::Stub stub(ConnectedFrom("127.0.0.1"));
  {
    const RawConnection breaks(server_->server().port());
    ASSERT_TRUE(breaks.Send(
        Http2Greeting() + Http2CallHead(1, "/switchyard.v1.InferenceService/Generate") +
        Http2Message(1, ShortRequest(2).SerializeAsString(), true)
    ));
    engine_->WaitUntilSubmitted(1);
    EXPECT_FALSE(GetLoad(stub).ok());
  }

  WaitUntilTaken(stub);
}

TEST_F(StreamsOfAHost, AreCountedWhateverTheirService) {
  Start(1);
  engine_->SetStatistics(TwoRouters());
  v1::InferenceService::Stub inference(ConnectedFrom("127.0.0.1"));
  v1::ExpertService::Stub experts(ConnectedFrom("127.0.0.1"));
  grpc::ClientContext context;
  const auto statistics = experts.StreamExpertStats(&context, {});
  v1::GetExpertStatsResponse first;
  ASSERT_TRUE(statistics->Read(&first));

  EXPECT_EQ(GetLoad(inference).error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  context.TryCancel();
  while (statistics->Read(&first)) {
  }
  statistics->Finish();

  WaitUntilTaken(inference);
}

TEST_F(StreamsOfAHost, KeepNoProbeOut) {
  Start(1);
  engine_->HoldAfter(1);
  HeldStream one(server_->inference());
  ASSERT_TRUE(one.WasTaken());

  EXPECT_EQ(
      CallUnary(server_->channel(), "/grpc.health.v1.Health/Check", HealthRequest("")).bytes,
      kServing
  );
  engine_->Release();
  EXPECT_TRUE(one.End().ok());
}

}  // namespace
}  // namespace switchyard
