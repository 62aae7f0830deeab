#include <gmock/gmock.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>

#include "tests/server/running_server.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tiny_model.h"

// A client that goes away, in every state that its request can be in: what it held is free again,
// as GetLoad tells over the wire.

namespace switchyard {
namespace {

using ::testing::IsEmpty;

class Cancel : public ::testing::Test {
 protected:
  Cancel() {
    ServerOptions options;
    options.listen_address = "127.0.0.1:0";
    options.serving.outbox_bytes = 1 << 30;
    server_ = *Server::Listen(options);
    server_->SetReady(LoadTinyModel());
    inference_ = v1::InferenceService::NewStub(grpc::CreateChannel(
        Concat("127.0.0.1:", server_->port()), grpc::InsecureChannelCredentials()
    ));
    at_start_ = Load();
  }

  // A context that no request of a test gets to the end of, prompts cut into chunks of 24 tokens,
  // and one request at a time.
  static std::unique_ptr<LoadedModel> LoadTinyModel() {
    const TemporaryFolder folder;
    EXPECT_TRUE(WriteTinyJetMoe(folder.path(), {.context_tokens = 100'000}).ok());
    LoadOptions options;
    options.backend.device = "cpu";
    options.backend.threads = 1;
    options.engine.limits = {.max_step_tokens = 24, .max_running = 1, .block_tokens = 8};
    options.engine.kv_cache_bytes = int64_t{256} << 20;
    return *LoadModel(folder.path(), options);
  }

  static v1::GenerateRequest Request(int prompt_tokens) {
    v1::GenerateRequest request = ShortRequest(60'000);
    request.mutable_prompt_tokens()->mutable_ids()->Resize(prompt_tokens, 5);
    request.mutable_prompt_tokens()->set_ids(0, 5);
    request.mutable_stopping()->set_ignore_eos(true);
    return request;
  }

  v1::GetLoadResponse Load() {
    v1::GetLoadResponse load;
    grpc::ClientContext context;
    EXPECT_TRUE(inference_->GetLoad(&context, {}, &load).ok());
    return load;
  }

  v1::GetLoadResponse WaitUntil(const std::function<bool(const v1::GetLoadResponse&)>& is_reached) {
    v1::GetLoadResponse load = Load();
    while (!is_reached(load)) {
      load = Load();
    }
    return load;
  }

  void ExpectNothingIsHeldIn(const v1::GetLoadResponse& load) {
    EXPECT_EQ(load.kv_blocks_used(), at_start_.kv_blocks_used());
    EXPECT_EQ(load.running_requests(), 0);
    EXPECT_EQ(load.waiting_requests(), 0);
    EXPECT_EQ(load.queued_tokens(), 0);
  }

  static bool IsIdle(const v1::GetLoadResponse& load) { return load.open_streams() == 0; }

  std::unique_ptr<Server> server_;
  std::unique_ptr<v1::InferenceService::Stub> inference_;
  v1::GetLoadResponse at_start_;
};

TEST_F(Cancel, InTheQueue) {
  grpc::ClientContext running_context;
  const auto running = inference_->Generate(&running_context, Request(9));
  WaitUntil([](const auto& load) { return load.running_requests() == 1; });
  grpc::ClientContext waiting_context;
  const auto waiting = inference_->Generate(&waiting_context, Request(7));
  WaitUntil([](const auto& load) { return load.waiting_requests() == 1; });

  waiting_context.TryCancel();
  const v1::GetLoadResponse without_it =
      WaitUntil([](const auto& load) { return load.open_streams() == 1; });
  running_context.TryCancel();

  EXPECT_EQ(without_it.waiting_requests(), 0);
  EXPECT_EQ(without_it.running_requests(), 1);
  EXPECT_THAT(ReadStream(*waiting).token_ids, IsEmpty());
  EXPECT_EQ(ReadStream(*running).status.error_code(), grpc::StatusCode::CANCELLED);
  ExpectNothingIsHeldIn(WaitUntil(IsIdle));
}

TEST_F(Cancel, BetweenTwoChunksOfThePrompt) {
  grpc::ClientContext context;
  const auto reader = inference_->Generate(&context, Request(30'000));
  const v1::GetLoadResponse within =
      WaitUntil([](const auto& load) { return load.kv_blocks_used() > 0; });
  context.TryCancel();

  // A prompt leaves the queue with its first token.
  EXPECT_EQ(within.queued_tokens(), 30'000);
  EXPECT_EQ(within.running_requests(), 1);
  EXPECT_THAT(ReadStream(*reader).token_ids, IsEmpty());
  ExpectNothingIsHeldIn(WaitUntil(IsIdle));
}

TEST_F(Cancel, WhileItDecodes) {
  grpc::ClientContext context;
  const auto reader = inference_->Generate(&context, Request(9));
  v1::GenerateResponse first;
  ASSERT_TRUE(reader->Read(&first));
  EXPECT_GT(Load().kv_blocks_used(), 0);

  context.TryCancel();

  EXPECT_EQ(ReadStream(*reader).status.error_code(), grpc::StatusCode::CANCELLED);
  ExpectNothingIsHeldIn(WaitUntil(IsIdle));
}

TEST_F(Cancel, WhileAWriteWaitsForItsClient) {
  v1::GenerateRequest request = Request(9);
  request.mutable_output()->set_top_logprobs(20);
  grpc::ClientContext context;
  const auto reader = inference_->Generate(&context, request);
  // 4000 tokens with their logprobs are more than a connection holds for a client that reads none.
  WaitUntil([](const auto& load) { return load.kv_blocks_used() * 8 > 4000; });

  context.TryCancel();

  ExpectNothingIsHeldIn(WaitUntil(IsIdle));
  EXPECT_EQ(ReadStream(*reader).status.error_code(), grpc::StatusCode::CANCELLED);
}

TEST_F(Cancel, ByADeadlineInTheQueue) {
  grpc::ClientContext running_context;
  const auto running = inference_->Generate(&running_context, Request(9));
  WaitUntil([](const auto& load) { return load.running_requests() == 1; });
  grpc::ClientContext waiting_context;
  waiting_context.set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(50));
  const auto waiting = inference_->Generate(&waiting_context, Request(7));

  EXPECT_EQ(ReadStream(*waiting).status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  WaitUntil([](const auto& load) {
    return load.waiting_requests() == 0 && load.open_streams() == 1;
  });
  running_context.TryCancel();
  ExpectNothingIsHeldIn(WaitUntil(IsIdle));
}

}  // namespace
}  // namespace switchyard
