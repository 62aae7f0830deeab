#include "clients/cpp/client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/server.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tiny_model.h"

namespace switchyard {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

// A server in this process with a tiny JetMoE model that has no tokenizer.
class ClientTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ServerOptions options;
    options.listen_address = "127.0.0.1:0";
    options.admin_address = "127.0.0.1:0";
    Listen(options);
  }

  void Listen(const ServerOptions& options) {
    server_ = *Server::Listen(options);
    client_ = std::make_unique<Client>(Concat("127.0.0.1:", server_->port()));
  }

  void Serve() {
    const Status written = WriteTinyJetMoe(folder_.path(), {});
    ASSERT_TRUE(written.ok()) << written;
    LoadOptions options;
    options.name = "tiny";
    options.backend.threads = 1;
    options.engine.kv_cache_bytes = 1 << 20;
    auto model = LoadModel(folder_.path(), options);
    ASSERT_TRUE(model.ok()) << model.status();
    server_->SetReady(*std::move(model));
  }

  static v1::GenerateRequest Request(int32_t max_tokens) {
    v1::GenerateRequest request;
    for (const int32_t id : {1, 17, 42}) {
      request.mutable_prompt_tokens()->add_ids(id);
    }
    request.mutable_stopping()->set_max_tokens(max_tokens);
    request.mutable_stopping()->set_ignore_eos(true);
    request.mutable_sampling()->set_seed(5);
    return request;
  }

  TemporaryFolder folder_;
  std::unique_ptr<Server> server_;
  std::unique_ptr<Client> client_;
};

StreamVerdict Continue(const v1::Delta& /*delta*/) {
  return StreamVerdict::kContinue;
}

TEST_F(ClientTest, StreamsTheTokensThatOneAnswerHas) {
  Serve();
  std::vector<int32_t> streamed;

  const auto finished = client_->Generate(Request(20), [&streamed](const v1::Delta& delta) {
    streamed.insert(streamed.end(), delta.token_ids().begin(), delta.token_ids().end());
    return StreamVerdict::kContinue;
  });
  const auto once = client_->GenerateOnce(Request(20));

  ASSERT_TRUE(finished.ok()) << finished.status();
  ASSERT_TRUE(once.ok()) << once.status();
  EXPECT_EQ(finished->reason(), v1::FINISH_REASON_LENGTH);
  EXPECT_EQ(finished->usage().completion_tokens(), 20);
  EXPECT_EQ(streamed, std::vector<int32_t>(once->token_ids().begin(), once->token_ids().end()));
}

TEST_F(ClientTest, TellsDeltasOfSeveralCompletionsApart) {
  Serve();
  v1::GenerateRequest request = Request(20);
  request.set_n(2);
  std::vector<std::vector<int32_t>> streamed(2);

  const auto finished = client_->Generate(request, [&streamed](const v1::Delta& delta) {
    std::vector<int32_t>& tokens = streamed.at(static_cast<size_t>(delta.completion()));
    tokens.insert(tokens.end(), delta.token_ids().begin(), delta.token_ids().end());
    return StreamVerdict::kContinue;
  });
  const auto once = client_->GenerateOnce(request);

  ASSERT_TRUE(finished.ok() && once.ok());
  const auto& further = once->further_completions(0).token_ids();
  EXPECT_EQ(streamed[0], std::vector<int32_t>(once->token_ids().begin(), once->token_ids().end()));
  EXPECT_EQ(streamed[1], std::vector<int32_t>(further.begin(), further.end()));
}

TEST_F(ClientTest, TellsPromptLogprobsAsAScoreHasThem) {
  Serve();
  v1::GenerateRequest request = Request(1);
  request.mutable_output()->set_prompt_top_logprobs(0);
  std::vector<float> told;
  v1::ScoreRequest score;
  score.mutable_prompt_tokens()->add_ids(1);
  score.add_continuation_tokens()->add_ids(17);
  score.mutable_continuation_tokens(0)->add_ids(42);

  const auto finished =
      client_->Generate(request, Continue, [&told](const v1::PromptLogprobs& logprobs) {
        for (const v1::TokenLogprobs& token : logprobs.tokens()) {
          told.push_back(token.chosen().logprob());
        }
      });
  const auto scored = client_->Score(score);

  ASSERT_TRUE(finished.ok() && scored.ok());
  ASSERT_EQ(told.size(), 2U);
  EXPECT_EQ(told[0], scored->scores(0).logprobs(0).chosen().logprob());
  EXPECT_EQ(told[1], scored->scores(0).logprobs(1).chosen().logprob());
}

TEST_F(ClientTest, CancelsWhenTheCallbackSaysSo) {
  Serve();
  int deltas = 0;

  const auto finished = client_->Generate(Request(90), [&deltas](const v1::Delta& /*delta*/) {
    ++deltas;
    return StreamVerdict::kCancel;
  });

  EXPECT_EQ(finished.status().code(), StatusCode::kCancelled);
  EXPECT_GE(deltas, 1);
}

TEST_F(ClientTest, PassesTheServersCodeAndMessageOn) {
  Serve();
  v1::GenerateRequest request = Request(5);
  request.mutable_prompt_tokens()->add_ids(61);

  const Status status = client_->Generate(request, Continue).status();

  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(MessageOf(status), HasSubstr("61"));
}

TEST_F(ClientTest, TellsWhenARefusedRequestMayComeAgain) {
  ServerOptions options;
  options.listen_address = "127.0.0.1:0";
  options.serving.max_streams = 0;
  Listen(options);
  Serve();

  const Status full = client_->Generate(Request(5), Continue).status();
  const Status wrong = client_->Detokenize({1}).status();

  EXPECT_EQ(full.code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(RetryDelay(full), milliseconds(1000));
  EXPECT_EQ(wrong.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(RetryDelay(wrong), std::nullopt);
  EXPECT_EQ(RetryDelay(OkStatus()), std::nullopt);
}

TEST_F(ClientTest, TellsTheLoad) {
  Serve();
  client_->GenerateOnce(Request(5)).IgnoreError();
  v1::GenerateRequest wrong = Request(5);
  wrong.mutable_prompt_tokens()->add_ids(61);
  client_->GenerateOnce(wrong).IgnoreError();

  const auto load = client_->GetLoad();

  ASSERT_TRUE(load.ok()) << load.status();
  EXPECT_EQ(load->running_requests(), 0);
  EXPECT_GT(load->kv_blocks_free(), 0);
  EXPECT_EQ(load->kv_blocks_free() + load->kv_blocks_cached(), load->kv_blocks_total());
  EXPECT_EQ(load->refusals_total().at("invalid"), 1);
}

TEST_F(ClientTest, TellsTheModelAndItsExperts) {
  Serve();

  const auto info = client_->GetModelInfo();
  const auto stats = client_->GetExpertStats({});

  ASSERT_TRUE(info.ok()) << info.status();
  ASSERT_TRUE(stats.ok()) << stats.status();
  EXPECT_EQ(info->model(), "tiny");
  EXPECT_EQ(info->routers_size(), 4);
  EXPECT_EQ(stats->routers_size(), 4);
}

TEST_F(ClientTest, StreamsTheRoutingThatOneAnswerHas) {
  Serve();
  v1::GenerateRequest request = Request(5);
  request.mutable_output()->set_routing(true);
  request.mutable_scheduling()->set_bypass_prefix_cache(true);
  std::vector<int32_t> streamed;

  const auto finished =
      client_->Generate(request, Continue, {}, [&streamed](const v1::RoutingTrace& trace) {
        const auto& ids = trace.routers(0).expert_ids();
        streamed.insert(streamed.end(), ids.begin(), ids.end());
      });
  const auto once = client_->GenerateOnce(request);

  ASSERT_TRUE(finished.ok()) << finished.status();
  ASSERT_TRUE(once.ok()) << once.status();
  ASSERT_EQ(once->routing_size(), 1);
  EXPECT_EQ(once->routing(0).tokens(), 3 + 5 - 1);
  const auto& ids = once->routing(0).routers(0).expert_ids();
  EXPECT_EQ(streamed, std::vector<int32_t>(ids.begin(), ids.end()));
}

TEST_F(ClientTest, BeginsAWindowOfExpertCounts) {
  Serve();
  ASSERT_TRUE(client_->GenerateOnce(Request(5)).ok());
  v1::GetExpertStatsRequest request;
  request.set_window(v1::WINDOW_SINCE_RESET);

  const Status reset = Client(Concat("127.0.0.1:", *server_->admin_port())).ResetExpertWindow();
  const auto stats = client_->GetExpertStats(request);

  EXPECT_TRUE(reset.ok()) << reset;
  ASSERT_TRUE(stats.ok()) << stats.status();
  EXPECT_EQ(stats->routers(0).tokens_routed(), 0);
}

TEST_F(ClientTest, SaysThatAModelHasNoTokenizer) {
  Serve();
  v1::TokenizeRequest request;
  request.set_text("x");

  EXPECT_FALSE(client_->Tokenize(request).ok());
  EXPECT_FALSE(client_->Detokenize({1}).ok());
}

TEST_F(ClientTest, SaysWhyAProfileIsRefused) {
  Serve();
  v1::ProfileExpertsRequest request;
  request.set_text("x");

  const Status elsewhere = client_->ProfileExperts(request).status();
  const Status without_tokenizer =
      Client(Concat("127.0.0.1:", *server_->admin_port())).ProfileExperts(request).status();

  EXPECT_EQ(elsewhere.code(), StatusCode::kPermissionDenied);
  EXPECT_EQ(without_tokenizer.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(MessageOf(without_tokenizer), HasSubstr("tokenizer"));
}

TEST_F(ClientTest, HealthIsNotServingUntilTheModelIsThere) {
  const auto before = client_->CheckHealth("");
  Serve();
  const auto after = client_->CheckHealth("");

  ASSERT_TRUE(before.ok()) << before.status();
  ASSERT_TRUE(after.ok()) << after.status();
  EXPECT_EQ(*before, ServingStatus::kNotServing);
  EXPECT_EQ(*after, ServingStatus::kServing);
  EXPECT_TRUE(client_->WaitUntilServing(milliseconds(1000)).ok());
}

TEST_F(ClientTest, HealthOfAnUnknownServiceIsNotFound) {
  EXPECT_EQ(client_->CheckHealth("no.such.Service").status().code(), StatusCode::kNotFound);
}

TEST_F(ClientTest, WaitingSaysWhatTheServerAnsweredLast) {
  const Status status = client_->WaitUntilServing(milliseconds(20));

  EXPECT_EQ(status.code(), StatusCode::kDeadlineExceeded);
  EXPECT_THAT(MessageOf(status), HasSubstr("NOT_SERVING"));
}

TEST_F(ClientTest, ADeadlineEndsTheCall) {
  Serve();
  ClientOptions options;
  options.deadline = milliseconds(0);
  const Client client(client_->address(), options);

  EXPECT_EQ(client.Generate(Request(90), Continue).status().code(), StatusCode::kDeadlineExceeded);
}

TEST(ClientWithoutServer, NamesTheAddress) {
  const Client client("127.0.0.1:1");

  const Status status = client.GetModelInfo().status();

  EXPECT_EQ(status.code(), StatusCode::kUnavailable);
  EXPECT_THAT(MessageOf(status), HasSubstr("server 127.0.0.1:1"));
}

}  // namespace
}  // namespace switchyard
