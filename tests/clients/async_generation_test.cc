#include "clients/cpp/async_generation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <memory>

#include "server/server.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tiny_model.h"

namespace switchyard {
namespace {

// Keeps what a stream tells, and does to it what a test wants after the first tokens.
class Recorder : public GenerationObserver {
 public:
  enum class AtFirstTokens { kNothing, kCancel, kPause };

  explicit Recorder(AtFirstTokens at_first_tokens) : at_first_tokens_(at_first_tokens) {}

  void Follow(AsyncGeneration& stream) { stream_ = &stream; }
  Status WaitForEnd() { return done_.get_future().get(); }
  void WaitForFirstTokens() { first_tokens_.get_future().get(); }
  int tokens() const { return tokens_; }
  int finished() const { return finished_; }

 private:
  void OnEvent(const v1::GenerateResponse& event) override {
    const bool is_first = tokens_ == 0;
    tokens_ += event.delta().token_ids_size();
    finished_ += event.has_finished() ? 1 : 0;
    if (!is_first) {
      return;
    }
    if (at_first_tokens_ == AtFirstTokens::kCancel) {
      stream_->Cancel();
    } else if (at_first_tokens_ == AtFirstTokens::kPause) {
      stream_->Pause();
    }
    first_tokens_.set_value();
  }
  void OnDone(const Status& status) override { done_.set_value(status); }

  AtFirstTokens at_first_tokens_;
  AsyncGeneration* stream_ = nullptr;
  std::atomic<int> tokens_{0};
  int finished_ = 0;
  std::promise<void> first_tokens_;
  std::promise<Status> done_;
};

class AsyncGenerationTest : public ::testing::Test {
 protected:
  AsyncGenerationTest() {
    ServerOptions options;
    options.listen_address = "127.0.0.1:0";
    server_ = *Server::Listen(options);
    EXPECT_TRUE(WriteTinyJetMoe(folder_.path(), {.context_tokens = 20'000}).ok());
    LoadOptions load;
    load.backend.threads = 1;
    load.engine.kv_cache_bytes = 16 << 20;
    server_->SetReady(*LoadModel(folder_.path(), load));
    client_ = std::make_unique<Client>(Concat("127.0.0.1:", server_->port()));
  }

  static v1::GenerateRequest Request(int32_t max_tokens) {
    v1::GenerateRequest request;
    request.mutable_prompt_tokens()->add_ids(5);
    request.mutable_stopping()->set_max_tokens(max_tokens);
    request.mutable_stopping()->set_ignore_eos(true);
    return request;
  }

  TemporaryFolder folder_;
  std::unique_ptr<Server> server_;
  std::unique_ptr<Client> client_;
};

TEST_F(AsyncGenerationTest, TellsEveryTokenAndTheEnd) {
  Recorder recorder(Recorder::AtFirstTokens::kNothing);
  AsyncGeneration stream(recorder);

  stream.Start(*client_, Request(30), std::nullopt);

  EXPECT_TRUE(recorder.WaitForEnd().ok());
  EXPECT_EQ(recorder.tokens(), 30);
  EXPECT_EQ(recorder.finished(), 1);
}

TEST_F(AsyncGenerationTest, EndsWithCancelledWhenItIsCancelled) {
  Recorder recorder(Recorder::AtFirstTokens::kCancel);
  AsyncGeneration stream(recorder);
  recorder.Follow(stream);

  stream.Start(*client_, Request(15'000), std::nullopt);

  EXPECT_EQ(recorder.WaitForEnd().code(), StatusCode::kCancelled);
  EXPECT_LT(recorder.tokens(), 15'000);
}

TEST_F(AsyncGenerationTest, MayBeCancelledBeforeItStarts) {
  Recorder recorder(Recorder::AtFirstTokens::kNothing);
  AsyncGeneration stream(recorder);
  stream.Cancel();

  stream.Start(*client_, Request(15'000), std::nullopt);

  EXPECT_EQ(recorder.WaitForEnd().code(), StatusCode::kCancelled);
}

TEST_F(AsyncGenerationTest, ReadsNothingWhilePausedAndEverythingAfterwards) {
  Recorder recorder(Recorder::AtFirstTokens::kPause);
  AsyncGeneration stream(recorder);
  recorder.Follow(stream);
  stream.Start(*client_, Request(50), std::nullopt);
  recorder.WaitForFirstTokens();
  const int read_before = recorder.tokens();

  // The server finishes another request of that length meanwhile: the first one is long over there.
  ASSERT_TRUE(client_->GenerateOnce(Request(60)).ok());
  EXPECT_EQ(recorder.tokens(), read_before);
  stream.Resume();

  EXPECT_TRUE(recorder.WaitForEnd().ok());
  EXPECT_EQ(recorder.tokens(), 50);
}

TEST_F(AsyncGenerationTest, EndsAtItsTimeLimit) {
  Recorder recorder(Recorder::AtFirstTokens::kNothing);
  AsyncGeneration stream(recorder);

  stream.Start(*client_, Request(15'000), std::chrono::milliseconds(1));

  EXPECT_EQ(recorder.WaitForEnd().code(), StatusCode::kDeadlineExceeded);
}

TEST_F(AsyncGenerationTest, NamesTheServerThatIsNotThere) {
  const Client client("127.0.0.1:1");
  Recorder recorder(Recorder::AtFirstTokens::kNothing);
  AsyncGeneration stream(recorder);

  stream.Start(client, Request(3), std::nullopt);

  const Status status = recorder.WaitForEnd();
  EXPECT_EQ(status.code(), StatusCode::kUnavailable);
  EXPECT_THAT(MessageOf(status), ::testing::HasSubstr("server 127.0.0.1:1: "));
}

}  // namespace
}  // namespace switchyard
