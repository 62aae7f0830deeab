#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "server/load_report.h"
#include "switchyard/v1/error_details.pb.h"
#include "tests/server/running_server.h"

// What the server takes, what it refuses, and what GetLoad says of both.

namespace switchyard {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kRefusalReasons = 9;

v1::GenerateRequest RequestOf(int prompt_tokens) {
  v1::GenerateRequest request = ShortRequest(2);
  request.mutable_prompt_tokens()->clear_ids();
  for (int i = 0; i < prompt_tokens; ++i) {
    request.mutable_prompt_tokens()->add_ids('p');
  }
  return request;
}

// When `status` says that the request may come again, in milliseconds.
std::optional<int64_t> RetryDelayMs(const grpc::Status& status) {
  v1::ErrorStatus details;
  v1::RetryInfo retry;
  if (!details.ParseFromString(status.error_details()) || details.details_size() != 1 ||
      details.details(0).type_url() != "type.googleapis.com/google.rpc.RetryInfo" ||
      !retry.ParseFromString(details.details(0).value())) {
    return std::nullopt;
  }
  return retry.retry_delay().seconds() * 1000 + retry.retry_delay().nanos() / 1'000'000;
}

class LoadTest : public ::testing::Test {
 protected:
  void Start(const ServingOptions& serving) {
    ServerOptions options;
    options.listen_address = "127.0.0.1:0";
    options.serving = serving;
    server_ = std::make_unique<RunningServer>(options);
    engine_ = &server_->SetReady({'a'});
  }

  v1::GetLoadResponse Load() {
    v1::GetLoadResponse load;
    grpc::ClientContext context;
    EXPECT_TRUE(server_->inference().GetLoad(&context, {}, &load).ok());
    return load;
  }

  // A request that the engine holds before its first token.
  std::unique_ptr<grpc::ClientReader<v1::GenerateResponse>> Hold(
      grpc::ClientContext& context, int prompt_tokens
  ) {
    engine_->HoldAfter(0);
    auto reader = server_->inference().Generate(&context, RequestOf(prompt_tokens));
    engine_->WaitUntilSubmitted(1);
    return reader;
  }

  std::unique_ptr<RunningServer> server_;
  FakeEngine* engine_ = nullptr;
};

TEST_F(LoadTest, RefusesMorePromptTokensThanMayWaitAndSaysWhenToComeAgain) {
  Start({.max_queued_tokens = 10});
  grpc::ClientContext context;
  const auto held = Hold(context, 7);

  const grpc::Status refused = Generate(server_->inference(), RequestOf(4)).status;
  const v1::GetLoadResponse load = Load();
  engine_->Release();

  EXPECT_EQ(refused.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(refused.error_message(), HasSubstr("7 prompt tokens are waiting"));
  EXPECT_EQ(RetryDelayMs(refused), 1000);
  EXPECT_EQ(load.queued_tokens(), 7);
  EXPECT_EQ(load.refusals_total().at("queued_tokens"), 1);
  EXPECT_TRUE(ReadStream(*held).status.ok());
  EXPECT_TRUE(Generate(server_->inference(), RequestOf(4)).status.ok());
  EXPECT_EQ(Load().queued_tokens(), 0);
}

TEST_F(LoadTest, CountsAPromptOutOfTheQueueWithItsFirstToken) {
  Start({});
  engine_->HoldAfter(1);
  grpc::ClientContext context;
  const auto reader = server_->inference().Generate(&context, RequestOf(7));
  v1::GenerateResponse first;
  ASSERT_TRUE(reader->Read(&first));

  const v1::GetLoadResponse load = Load();
  engine_->Release();

  EXPECT_EQ(load.queued_tokens(), 0);
  EXPECT_EQ(load.running_requests(), 1);
  EXPECT_EQ(load.open_streams(), 1);
}

TEST_F(LoadTest, CountsAPromptOutOfTheQueueWhenItsClientIsGone) {
  Start({});
  grpc::ClientContext context;
  const auto held = Hold(context, 7);

  context.TryCancel();
  engine_->WaitUntilIdle();

  EXPECT_EQ(Load().queued_tokens(), 0);
}

TEST_F(LoadTest, RefusesMoreStreamsThanMayBeOpen) {
  Start({.max_streams = 1});
  grpc::ClientContext context;
  const auto held = Hold(context, 1);

  const grpc::Status refused = Generate(server_->inference(), RequestOf(1)).status;
  grpc::ClientContext once_context;
  v1::GenerateOnceResponse response;
  const grpc::Status once =
      server_->inference().GenerateOnce(&once_context, RequestOf(1), &response);
  engine_->Release();

  for (const grpc::Status& status : {refused, once}) {
    EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
    EXPECT_THAT(status.error_message(), HasSubstr("1 streams are open; this server takes 1"));
    EXPECT_EQ(RetryDelayMs(status), 1000);
  }
  EXPECT_TRUE(ReadStream(*held).status.ok());
  EXPECT_EQ(Load().refusals_total().at("streams"), 2);
}

TEST_F(LoadTest, PassesTheEnginesFullQueueOnWithTheTimeToComeAgain) {
  Start({});
  engine_->RefuseWith(ResourceExhausted("256 requests wait already"));

  const grpc::Status refused = Generate(server_->inference(), RequestOf(1)).status;

  EXPECT_EQ(refused.error_message(), "256 requests wait already");
  EXPECT_EQ(RetryDelayMs(refused), 1000);
  EXPECT_EQ(Load().refusals_total().at("queued_requests"), 1);
  EXPECT_EQ(Load().queued_tokens(), 0);
}

TEST_F(LoadTest, CountsRefusalsByReason) {
  Start({});
  Generate(server_->inference(), RequestOf(0));
  v1::GenerateRequest other_model = RequestOf(1);
  other_model.set_model("other");
  Generate(server_->inference(), other_model);
  engine_->RefuseWith(Unavailable("stopping"));
  Generate(server_->inference(), RequestOf(1));

  const v1::GetLoadResponse load = Load();

  EXPECT_EQ(load.refusals_total().at("invalid"), 2);
  EXPECT_EQ(load.refusals_total().at("unavailable"), 1);
  EXPECT_EQ(load.refusals_total().at("streams"), 0);
  EXPECT_EQ(load.refusals_total().size(), kRefusalReasons);
}

TEST(LoadReport, SharesTheBlocksOutToUsedCachedAndFree) {
  ServingState state{ServingOptions()};
  EngineLoad engine;
  engine.running_requests = 3;
  engine.waiting_requests = 4;
  engine.available_blocks = 60;
  engine.cached_blocks = 25;
  engine.total_blocks = 100;
  engine.steps_total = 7;
  engine.preempted_total = 2;
  engine.not_finite_total = 1;
  engine.step_seconds_total = 1.5;
  engine.scheduling_seconds_total = 0.25;

  const v1::GetLoadResponse load = DescribeLoad(engine, state);

  EXPECT_EQ(load.running_requests(), 3);
  EXPECT_EQ(load.waiting_requests(), 4);
  EXPECT_EQ(load.kv_blocks_used(), 40);
  EXPECT_EQ(load.kv_blocks_cached(), 25);
  EXPECT_EQ(load.kv_blocks_free(), 35);
  EXPECT_EQ(load.kv_blocks_total(), 100);
  EXPECT_EQ(load.steps_total(), 7);
  EXPECT_EQ(load.preemptions_total(), 2);
  EXPECT_EQ(load.not_finite_total(), 1);
  EXPECT_EQ(load.step_seconds_total(), 1.5);
  EXPECT_EQ(load.scheduling_seconds_total(), 0.25);
}

}  // namespace
}  // namespace switchyard
