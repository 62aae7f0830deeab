#include <gmock/gmock.h>
#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "server/access/api_key.h"
#include "switchyard/v1/inference.grpc.pb.h"
#include "tests/end_to_end/serve_process.h"
#include "tests/server/generic_call.h"
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

  static void WaitForLoad(
      v1::InferenceService::Stub& stub,
      const std::function<bool(const v1::GetLoadResponse&)>& is_reached
  ) {
    v1::GetLoadResponse load;
    do {
      grpc::ClientContext context;
      ASSERT_TRUE(stub.GetLoad(&context, {}, &load).ok());
    } while (!is_reached(load));
  }

  static int64_t NumberAfter(const std::string& line, const std::string& name) {
    const size_t place = line.find(name);
    return place == std::string::npos ? -1 : std::atoll(line.c_str() + place + name.size());
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

TEST_F(ServeCommand, TakesUpNewKeysAtAHangupAndGoesOn) {
  const auto file_of = [](const std::string& key) {
    return Concat(R"({"keys": [{"name": "ann", "sha256": ")", HexOf(HashKey(key)), "\"}]}");
  };
  const std::string old_key = *MakeApiKey();
  const std::string new_key = *MakeApiKey();
  const auto keys = folder_.Write("keys.json", file_of(old_key));
  ServeProcess process(folder_.path(), {Concat("--api-keys=", keys.string())});
  const auto stub = Connect(process);
  const auto code_with = [&stub](const std::string& key) {
    grpc::ClientContext context;
    context.AddMetadata("authorization", "Bearer " + key);
    v1::GetLoadResponse load;
    return stub->GetLoad(&context, {}, &load).error_code();
  };
  ASSERT_NE(process.WaitForLog("event=ready"), "");
  ASSERT_EQ(code_with(old_key), grpc::StatusCode::OK);
  folder_.Write("keys.json", file_of(new_key));

  process.Signal(SIGHUP);

  ASSERT_NE(process.WaitForLog("signal=SIGHUP"), "");
  EXPECT_EQ(code_with(new_key), grpc::StatusCode::OK);
  EXPECT_EQ(code_with(old_key), grpc::StatusCode::UNAUTHENTICATED);
  process.Signal(SIGTERM);
  EXPECT_EQ(process.Wait(), 0);
}

TEST_F(ServeCommand, FinishesEveryStreamThatRunsOrWaits) {
  constexpr size_t kStreams = 12;
  ServeProcess process(folder_.path(), {"--max-running=3", "--drain-timeout=300"});
  const auto stub = Connect(process);
  ASSERT_NE(process.WaitForLog("event=ready"), "");
  std::vector<std::unique_ptr<grpc::ClientContext>> contexts;
  std::vector<std::unique_ptr<grpc::ClientReader<v1::GenerateResponse>>> readers;
  for (size_t i = 0; i < kStreams; ++i) {
    contexts.push_back(std::make_unique<grpc::ClientContext>());
    readers.push_back(stub->Generate(contexts.back().get(), LongRequest()));
  }
  WaitForLoad(*stub, [](const auto& load) { return load.open_streams() == kStreams; });

  process.Signal(SIGTERM);

  for (const auto& reader : readers) {
    const Stream stream = ReadStream(*reader);
    EXPECT_TRUE(stream.status.ok()) << stream.status.error_message();
    EXPECT_THAT(stream.token_ids, SizeIs(1000));
    EXPECT_THAT(stream.finished, SizeIs(1));
  }
  EXPECT_THAT(process.WaitForLog("event=drained"), HasSubstr("streams_left=0"));
  EXPECT_EQ(process.Wait(), 0);
}

TEST_F(ServeCommand, RefusesNewStreamsAndReadinessWhileItDrains) {
  ServeProcess process(folder_.path(), {"--drain-timeout=300"});
  const auto channel =
      grpc::CreateChannel(Concat("127.0.0.1:", process.Port()), grpc::InsecureChannelCredentials());
  const auto stub = v1::InferenceService::NewStub(channel);
  ASSERT_NE(process.WaitForLog("event=ready"), "");
  GenericStream watch(channel, "/grpc.health.v1.Health/Watch", HealthRequest(""));
  EXPECT_EQ(watch.Read(), kServing);
  grpc::ClientContext context;
  v1::GenerateRequest request = LongRequest();
  request.mutable_stopping()->set_max_tokens(190'000);
  const auto reader = stub->Generate(&context, request);
  v1::GenerateResponse first;
  ASSERT_TRUE(reader->Read(&first));

  process.Signal(SIGTERM);
  EXPECT_EQ(watch.Read(), kNotServing);
  const grpc::Status refused = Generate(*stub, LongRequest()).status;
  context.TryCancel();

  EXPECT_EQ(refused.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(refused.error_message(), HasSubstr("stopping"));
  EXPECT_EQ(process.Wait(), 0);
}

TEST_F(ServeCommand, EndsWhatStillRunsWhenTheDrainTimeoutIsOver) {
  ServeProcess process(folder_.path(), {"--drain-timeout=0"});
  const auto stub = Connect(process);
  ASSERT_NE(process.WaitForLog("event=ready"), "");
  grpc::ClientContext context;
  v1::GenerateRequest request = LongRequest();
  request.mutable_stopping()->set_max_tokens(190'000);
  const auto reader = stub->Generate(&context, request);
  v1::GenerateResponse first;
  ASSERT_TRUE(reader->Read(&first));

  process.Signal(SIGTERM);

  EXPECT_EQ(ReadStream(*reader).status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(process.WaitForLog("event=drained"), HasSubstr("streams_left=1"));
  EXPECT_EQ(process.Wait(), 0);
}

TEST_F(ServeCommand, TakesAShareOfTheFreeMemoryForTheCache) {
  ServeProcess process(folder_.path(), {"--kv-cache-memory=0.5%"});
  const std::string sized = process.WaitForLog("event=kv_cache_sized");
  const int64_t free_bytes = NumberAfter(sized, "free_bytes=");
  const int64_t bytes = NumberAfter(sized, " bytes=");
  const std::string engine = process.WaitForLog("event=engine_ready");

  EXPECT_GT(free_bytes, 0);
  EXPECT_NEAR(static_cast<double>(bytes), static_cast<double>(free_bytes) * 0.005, 1);
  EXPECT_EQ(
      NumberAfter(engine, " blocks="),
      bytes / (NumberAfter(engine, "block_tokens=") * NumberAfter(engine, "kv_bytes_per_token="))
  );
  process.Signal(SIGTERM);
}

TEST_F(ServeCommand, SchedulesAsItsFlagsSay) {
  ServeProcess process(
      folder_.path(),
      {"--prefix-cache=off",
       "--growth-tokens=0",
       "--priority-ageing=0",
       "--max-completions=2",
       "--max-continuations=1"}
  );
  const auto stub = Connect(process);
  ASSERT_NE(process.WaitForLog("event=ready"), "");
  v1::GenerateRequest request = LongRequest();
  request.mutable_prompt_tokens()->mutable_ids()->Resize(40, 5);
  request.mutable_stopping()->set_max_tokens(1);
  Generate(*stub, request);

  const Stream again = Generate(*stub, request);
  request.set_n(3);
  const grpc::Status many = Generate(*stub, request).status;
  v1::ScoreRequest score;
  *score.mutable_prompt_tokens() = request.prompt_tokens();
  score.add_continuation_tokens()->add_ids(1);
  score.add_continuation_tokens()->add_ids(1);
  v1::ScoreResponse response;
  grpc::ClientContext context;
  const grpc::Status scored = stub->Score(&context, score, &response);

  ASSERT_THAT(again.finished, SizeIs(1));
  EXPECT_EQ(again.finished[0].usage().cached_prompt_tokens(), 0);
  EXPECT_THAT(many.error_message(), HasSubstr("n is 3; it must be in [1, 2]"));
  EXPECT_THAT(scored.error_message(), HasSubstr("has 2 entries; at most 1 are taken"));
  process.Signal(SIGTERM);
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
