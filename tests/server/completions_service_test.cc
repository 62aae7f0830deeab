#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include <chrono>
#include <string>
#include <vector>

#include "server/inference_service.h"
#include "tests/server/running_server.h"

// Several completions, and scores, over gRPC with the fake engine: completion i has tokens of the
// log-probability -0.5 / (i + 1), so the last is the best.

namespace switchyard {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Property;
using ::testing::SizeIs;

class CompletionsServiceTest : public ::testing::Test {
 protected:
  grpc::Status Once(const v1::GenerateRequest& request, v1::GenerateOnceResponse& response) {
    grpc::ClientContext context;
    return server_.inference().GenerateOnce(&context, request, &response);
  }

  grpc::Status Score(const v1::ScoreRequest& request, v1::ScoreResponse& response) {
    grpc::ClientContext context;
    return server_.inference().Score(&context, request, &response);
  }

  v1::GetLoadResponse Load() {
    v1::GetLoadResponse load;
    grpc::ClientContext context;
    EXPECT_TRUE(server_.inference().GetLoad(&context, {}, &load).ok());
    return load;
  }

  RunningServer server_;
};

TEST_F(CompletionsServiceTest, StreamsEachCompletionUnderItsNumberAndOneEndForAll) {
  server_.SetReady({'a', 'b', 'c'});
  v1::GenerateRequest request = ShortRequest(4);
  request.set_n(3);

  const Stream stream = Generate(server_.inference(), request);

  ASSERT_TRUE(stream.status.ok()) << stream.status.error_message();
  EXPECT_THAT(stream.completions, SizeIs(3));
  EXPECT_THAT(stream.completions, Each(Property(&v1::Completion::text, "abca")));
  ASSERT_THAT(stream.finished, SizeIs(1));
  const v1::Finished& finished = stream.finished[0];
  EXPECT_EQ(finished.usage().prompt_tokens(), 1);
  EXPECT_EQ(finished.usage().completion_tokens(), 12);
  ASSERT_EQ(finished.completions_size(), 3);
  EXPECT_EQ(finished.completions(0).logprob_sum(), -2);
  EXPECT_EQ(finished.completions(1).logprob_sum(), -1);
  EXPECT_EQ(finished.completions(1).completion_tokens(), 4);
  EXPECT_EQ(finished.completions(1).reason(), v1::FINISH_REASON_LENGTH);
}

TEST_F(CompletionsServiceTest, SaysHowEachCompletionEnded) {
  server_.SetReady({'a', FakeTokenizer::kEos});
  v1::GenerateRequest request = ShortRequest(4);
  request.set_n(2);
  v1::GenerateOnceResponse once;

  ASSERT_TRUE(Once(request, once).ok());

  EXPECT_EQ(once.finished().eos_token_id(), FakeTokenizer::kEos);
  ASSERT_EQ(once.finished().completions_size(), 2);
  for (const v1::CompletionEnd& end : once.finished().completions()) {
    EXPECT_EQ(end.reason(), v1::FINISH_REASON_STOP);
    EXPECT_EQ(end.eos_token_id(), FakeTokenizer::kEos);
    EXPECT_EQ(end.completion_tokens(), 2);
  }
}

TEST_F(CompletionsServiceTest, AnswersAtOnceWithTheFirstAndTheFurtherCompletions) {
  server_.SetReady({'a', 'b'});
  v1::GenerateRequest request = ShortRequest(3);
  request.set_n(3);
  request.mutable_output()->set_top_logprobs(1);
  v1::GenerateOnceResponse once;

  ASSERT_TRUE(Once(request, once).ok());

  EXPECT_EQ(once.text(), "aba");
  EXPECT_EQ(once.logprobs_size(), 3);
  ASSERT_EQ(once.further_completions_size(), 2);
  for (const v1::Completion& further : once.further_completions()) {
    EXPECT_EQ(further.text(), "aba");
    EXPECT_THAT(further.token_ids(), ElementsAre('a', 'b', 'a'));
    EXPECT_EQ(further.logprobs_size(), 3);
  }
}

TEST_F(CompletionsServiceTest, ReturnsTheBestOfThoseThatWereMade) {
  FakeEngine& engine = server_.SetReady({'a', 'b'});
  v1::GenerateRequest request = ShortRequest(2);
  request.set_n(2);
  request.set_best_of(4);

  const Stream stream = Generate(server_.inference(), request);

  EXPECT_EQ(engine.LastRequest().completions, 4);
  EXPECT_THAT(stream.completions, SizeIs(2));
  ASSERT_THAT(stream.finished, SizeIs(1));
  ASSERT_EQ(stream.finished[0].completions_size(), 2);
  EXPECT_EQ(stream.finished[0].completions(0).logprob_sum(), -0.25);
  EXPECT_NEAR(stream.finished[0].completions(1).logprob_sum(), -1.0 / 3, 1e-6);
  EXPECT_EQ(stream.finished[0].usage().completion_tokens(), 4);
}

TEST_F(CompletionsServiceTest, EndsTheRequestWhenOneOfItsCompletionsFails) {
  FakeEngine& engine = server_.SetReady({'a'});
  engine.FailAfter(2, Internal("not finite"));
  v1::GenerateRequest request = ShortRequest(9);
  request.set_n(3);

  const Stream stream = Generate(server_.inference(), request);
  engine.WaitUntilIdle();

  EXPECT_EQ(stream.status.error_code(), grpc::StatusCode::INTERNAL);
  EXPECT_THAT(stream.finished, IsEmpty());
  // The server forgets a stream after its client has heard of the end.
  while (Load().open_streams() > 0) {
    std::this_thread::yield();
  }
}

TEST_F(CompletionsServiceTest, TellsPromptLogprobsBeforeTheFirstDelta) {
  server_.SetReady({'a'});
  v1::GenerateRequest request = ShortRequest(2);
  request.mutable_prompt_tokens()->add_ids('q');
  request.mutable_prompt_tokens()->add_ids('r');
  request.set_n(2);
  request.mutable_output()->set_prompt_top_logprobs(1);
  v1::GenerateOnceResponse once;

  const Stream stream = Generate(server_.inference(), request);
  ASSERT_TRUE(Once(request, once).ok());

  ASSERT_THAT(stream.prompt_logprobs, SizeIs(2));
  EXPECT_EQ(stream.prompt_logprobs[0].chosen().token(), "q");
  EXPECT_EQ(stream.prompt_logprobs[1].chosen().token(), "r");
  EXPECT_EQ(stream.prompt_logprobs[1].top_size(), 1);
  EXPECT_EQ(once.prompt_logprobs_size(), 2);
  EXPECT_EQ(once.finished().completions(0).logprob_sum(), -1);
}

v1::ScoreRequest TwoContinuations() {
  v1::ScoreRequest request;
  request.set_prompt_text("p");
  request.add_continuation_texts(std::string("ab"));
  request.add_continuation_texts(std::string("c"));
  return request;
}

TEST_F(CompletionsServiceTest, ScoresContinuationsInTheirOrder) {
  server_.SetReady({'x'});
  v1::ScoreRequest request = TwoContinuations();
  request.set_request_id("mine");
  v1::ScoreResponse response;

  const grpc::Status status = Score(request, response);

  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(response.request_id(), "mine");
  ASSERT_EQ(response.scores_size(), 2);
  EXPECT_THAT(response.scores(0).token_ids(), ElementsAre('a', 'b'));
  EXPECT_EQ(response.scores(0).logprob_sum(), -1);
  EXPECT_TRUE(response.scores(0).is_greedy());
  ASSERT_EQ(response.scores(0).logprobs_size(), 2);
  EXPECT_EQ(response.scores(0).logprobs(1).chosen().token(), "b");
  EXPECT_EQ(response.scores(0).logprobs(1).top_size(), 0);
  EXPECT_THAT(response.scores(1).token_ids(), ElementsAre('c'));
  EXPECT_EQ(response.usage().prompt_tokens(), 1);
  EXPECT_EQ(response.usage().completion_tokens(), 3);
}

TEST_F(CompletionsServiceTest, CountsEveryTokenOfAScoreAsWaiting) {
  ServerOptions options;
  options.listen_address = "127.0.0.1:0";
  options.serving.max_queued_tokens = 4;
  RunningServer server(options);
  FakeEngine& engine = server.SetReady({'x'});
  engine.HoldAfter(0);
  grpc::ClientContext context;
  const auto reader = server.inference().Generate(&context, ShortRequest(1));
  engine.WaitUntilSubmitted(1);
  v1::ScoreRequest request = TwoContinuations();
  grpc::ClientContext score;
  v1::ScoreResponse response;

  // One token waits; the score has four.
  const grpc::Status full = server.inference().Score(&score, request, &response);
  engine.Release();

  EXPECT_EQ(full.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(full.error_message(), HasSubstr("4"));
  EXPECT_TRUE(ReadStream(*reader).status.ok());
}

TEST_F(CompletionsServiceTest, RefusesAScoreWithItsField) {
  server_.SetReady({'x'});
  v1::ScoreRequest request = TwoContinuations();
  request.clear_continuation_texts();
  v1::ScoreResponse response;

  const grpc::Status status = Score(request, response);

  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("send at least one continuation"));
  EXPECT_EQ(Load().refusals_total().at("invalid"), 1);
}

TEST_F(CompletionsServiceTest, EndsAScoreAtItsDeadline) {
  FakeEngine& engine = server_.SetReady({'x'});
  engine.HoldAfter(0);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(50));
  v1::ScoreResponse response;

  const grpc::Status status = server_.inference().Score(&context, TwoContinuations(), &response);
  engine.WaitUntilIdle();

  EXPECT_EQ(status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
}

}  // namespace
}  // namespace switchyard
