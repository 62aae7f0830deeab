#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/end_to_end/model_server.h"
#include "tests/server/running_server.h"

// Log-probabilities of given tokens, over gRPC with the trained models.

namespace switchyard {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr char kPrompt[] = "And God said unto the children of Israel, and they went";

template <typename Tokens>
std::vector<std::string> BytesOf(const Tokens& tokens) {
  std::vector<std::string> bytes;
  for (const v1::TokenLogprobs& token : tokens) {
    bytes.push_back(token.SerializeAsString());
  }
  return bytes;
}

class Scoring : public ::testing::TestWithParam<std::string> {
 protected:
  v1::ScoreResponse Score(const v1::ScoreRequest& request) {
    v1::ScoreResponse response;
    grpc::ClientContext context;
    const grpc::Status status = server_.inference().Score(&context, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  }

  Stream Get(const v1::GenerateRequest& request) {
    Stream stream = Generate(server_.inference(), request);
    EXPECT_TRUE(stream.status.ok()) << stream.status.error_message();
    EXPECT_THAT(stream.completions, SizeIs(1));
    EXPECT_THAT(stream.finished, SizeIs(1));
    stream.completions.resize(1);
    stream.finished.resize(1);
    return stream;
  }

  static v1::GenerateRequest Request(float temperature) {
    v1::GenerateRequest request;
    request.set_prompt_text(kPrompt);
    request.mutable_sampling()->set_temperature(temperature);
    request.mutable_sampling()->set_seed(4);
    request.mutable_stopping()->set_max_tokens(12);
    request.mutable_stopping()->set_ignore_eos(true);
    request.mutable_output()->set_top_logprobs(2);
    return request;
  }

  ModelServer server_{GetParam()};
};

TEST_P(Scoring, GivesContinuationsTheLogprobsWithWhichTheyAreGenerated) {
  const Stream greedy = Get(Request(0));
  const Stream sampled = Get(Request(1.5F));
  v1::ScoreRequest request;
  request.set_prompt_text(kPrompt);
  *request.add_continuation_tokens()->mutable_ids() = greedy.completions[0].token_ids();
  *request.add_continuation_tokens()->mutable_ids() = sampled.completions[0].token_ids();
  request.set_top_logprobs(2);

  const v1::ScoreResponse scored = Score(request);

  ASSERT_EQ(scored.scores_size(), 2);
  EXPECT_EQ(BytesOf(scored.scores(0).logprobs()), BytesOf(greedy.logprobs));
  EXPECT_EQ(BytesOf(scored.scores(1).logprobs()), BytesOf(sampled.logprobs));
  EXPECT_TRUE(scored.scores(0).is_greedy());
  EXPECT_FALSE(scored.scores(1).is_greedy());
  EXPECT_EQ(scored.scores(0).logprob_sum(), greedy.finished[0].completions(0).logprob_sum());
  EXPECT_EQ(scored.scores(1).logprob_sum(), sampled.finished[0].completions(0).logprob_sum());
  EXPECT_EQ(scored.usage().completion_tokens(), 24);
}

TEST_P(Scoring, GivesPromptLogprobsAsThoseOfThePromptBehindItsFirstToken) {
  v1::GenerateRequest request = Request(0);
  request.mutable_output()->set_prompt_top_logprobs(3);
  request.mutable_output()->set_echo_prompt_tokens(true);
  const Stream stream = Get(request);
  const auto& prompt = stream.finished[0].prompt_token_ids();
  v1::ScoreRequest score;
  score.mutable_prompt_tokens()->add_ids(prompt.Get(0));
  score.add_continuation_tokens()->mutable_ids()->Add(prompt.begin() + 1, prompt.end());
  score.set_top_logprobs(3);

  const v1::ScoreResponse scored = Score(score);

  ASSERT_EQ(scored.scores_size(), 1);
  EXPECT_THAT(stream.prompt_logprobs, SizeIs(prompt.size() - 1));
  EXPECT_EQ(BytesOf(scored.scores(0).logprobs()), BytesOf(stream.prompt_logprobs));
  EXPECT_EQ(stream.prompt_logprobs[0].top_size(), 3);
}

TEST_P(Scoring, GivesPromptLogprobsWhetherOrNotThePromptIsCached) {
  v1::GenerateRequest request = Request(0);
  const Stream without = Get(request);
  EXPECT_THAT(without.prompt_logprobs, IsEmpty());
  request.mutable_output()->set_prompt_top_logprobs(0);

  const Stream first = Get(request);
  const Stream second = Get(request);

  EXPECT_EQ(BytesOf(first.prompt_logprobs), BytesOf(second.prompt_logprobs));
  EXPECT_EQ(BytesOf(first.logprobs), BytesOf(without.logprobs));
}

TEST_P(Scoring, ReadsTextsAsTheRestOfTheText) {
  v1::ScoreRequest request;
  request.set_prompt_text("In the beginning God created the heaven and the");
  request.add_continuation_texts(std::string(" earth"));
  request.add_continuation_texts(std::string(" xylophone"));

  const v1::ScoreResponse scored = Score(request);

  ASSERT_EQ(scored.scores_size(), 2);
  EXPECT_GT(scored.scores(0).logprob_sum(), scored.scores(1).logprob_sum());
  std::string text;
  for (const v1::TokenLogprobs& token : scored.scores(0).logprobs()) {
    EXPECT_EQ(token.top_size(), 0);
    text += token.chosen().token();
  }
  EXPECT_EQ(text, " earth");
}

TEST_P(Scoring, ComputesThePromptOnceForAllContinuations) {
  const auto routed = [this] {
    v1::GetExpertStatsResponse stats;
    grpc::ClientContext context;
    EXPECT_TRUE(server_.experts().GetExpertStats(&context, {}, &stats).ok());
    return stats.routers(0).tokens_routed();
  };
  v1::ScoreRequest request;
  for (int32_t i = 0; i < 33; ++i) {
    request.mutable_prompt_tokens()->add_ids(5 + i);
  }
  for (int32_t i = 0; i < 10; ++i) {
    request.add_continuation_tokens()->add_ids(7 + i);
  }
  const int64_t before = routed();

  Score(request);

  // Prompt and continuation, then for each of the others what is not in the four full blocks of 8.
  EXPECT_LE(routed() - before, 34 + 9 * 2);
}

TEST_P(Scoring, RefusesWhatCannotFitTheContext) {
  v1::ScoreRequest request;
  request.mutable_prompt_tokens()->add_ids(5);
  const int32_t context_tokens = server_.info().context_tokens();
  request.add_continuation_tokens()->mutable_ids()->Resize(context_tokens, 5);
  v1::ScoreResponse response;
  grpc::ClientContext context;

  const grpc::Status status = server_.inference().Score(&context, request, &response);

  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("shorten one of them by 1"));
}

INSTANTIATE_TEST_SUITE_P(
    Models,
    Scoring,
    ::testing::Values("bible-moa", "bible-switchhead"),
    [](const auto& model) { return std::string(model.param == "bible-moa" ? "Moa" : "SwitchHead"); }
);

}  // namespace
}  // namespace switchyard
