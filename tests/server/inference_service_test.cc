#include "server/inference_service.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "switchyard/v1/error_details.pb.h"
#include "tests/server/running_server.h"

namespace switchyard {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class InferenceServiceTest : public ::testing::Test {
 protected:
  RunningServer server_;
};

TEST_F(InferenceServiceTest, StreamsTheTokensThenExactlyOneFinishedEvent) {
  server_.SetReady({'a', 'b', 'c'});

  const Stream stream = Generate(server_.inference(), ShortRequest(5));

  EXPECT_TRUE(stream.status.ok()) << stream.status.error_message();
  EXPECT_EQ(stream.text, "abcab");
  EXPECT_THAT(stream.token_ids, ElementsAre('a', 'b', 'c', 'a', 'b'));
  ASSERT_THAT(stream.finished, SizeIs(1));
  EXPECT_EQ(stream.finished[0].reason(), v1::FINISH_REASON_LENGTH);
  EXPECT_EQ(stream.finished[0].usage().prompt_tokens(), 1);
  EXPECT_EQ(stream.finished[0].usage().completion_tokens(), 5);
}

TEST_F(InferenceServiceTest, SendsTheFirstTokensBeforeTheLastAreMade) {
  FakeEngine& engine = server_.SetReady({'a'});
  engine.HoldAfter(2);
  grpc::ClientContext context;
  const auto reader = server_.inference().Generate(&context, ShortRequest(3));

  v1::GenerateResponse response;
  std::string text;
  while (text.size() < 2 && reader->Read(&response)) {
    text += response.delta().text();
  }
  EXPECT_EQ(text, "aa");
  engine.Release();
  EXPECT_EQ(ReadStream(*reader).text, "a");
}

TEST_F(InferenceServiceTest, EndsAtTheEndOfSequenceWithItsIdAndWithoutText) {
  server_.SetReady({'a', FakeTokenizer::kEos});

  const Stream stream = Generate(server_.inference(), ShortRequest(5));

  EXPECT_EQ(stream.text, "a");
  EXPECT_THAT(stream.token_ids, ElementsAre('a', FakeTokenizer::kEos));
  ASSERT_THAT(stream.finished, SizeIs(1));
  EXPECT_EQ(stream.finished[0].reason(), v1::FINISH_REASON_STOP);
  EXPECT_EQ(stream.finished[0].eos_token_id(), FakeTokenizer::kEos);
}

TEST_F(InferenceServiceTest, SaysWhichStopTokenEndedIt) {
  server_.SetReady({'a', 'b'});
  v1::GenerateRequest request = ShortRequest(5);
  request.mutable_stopping()->add_stop_token_ids('b');

  const Stream stream = Generate(server_.inference(), request);

  ASSERT_THAT(stream.finished, SizeIs(1));
  EXPECT_EQ(stream.finished[0].matched_stop_case(), v1::Finished::kStopTokenId);
  EXPECT_EQ(stream.finished[0].stop_token_id(), 'b');
}

TEST_F(InferenceServiceTest, SaysWhichStopStringEndedItAndSendsNothingOfIt) {
  server_.SetReady({258, 259, 260}, {"one E", "N", "D two"});
  v1::GenerateRequest request = ShortRequest(9);
  request.mutable_stopping()->add_stop_strings(std::string("nowhere"));
  request.mutable_stopping()->add_stop_strings(std::string("END"));

  const Stream stream = Generate(server_.inference(), request);

  EXPECT_EQ(stream.text, "one ");
  ASSERT_THAT(stream.finished, SizeIs(1));
  EXPECT_EQ(stream.finished[0].reason(), v1::FINISH_REASON_STOP);
  EXPECT_EQ(stream.finished[0].stop_string(), "END");
  EXPECT_EQ(stream.finished[0].usage().completion_tokens(), 3);
}

TEST_F(InferenceServiceTest, CallsItAStopStringEvenOnTheLastAllowedToken) {
  server_.SetReady({'a', 'b'});
  v1::GenerateRequest request = ShortRequest(2);
  request.mutable_stopping()->add_stop_strings(std::string("ab"));

  const Stream stream = Generate(server_.inference(), request);

  ASSERT_THAT(stream.finished, SizeIs(1));
  EXPECT_EQ(stream.finished[0].stop_string(), "ab");
}

TEST_F(InferenceServiceTest, AnswersAtOnceWhatItWouldHaveStreamed) {
  server_.SetReady({258, 'b', 259, FakeTokenizer::kEos}, {"\xE2\x82", "\xAC"});
  v1::GenerateRequest request = ShortRequest(9);
  request.mutable_output()->set_top_logprobs(2);
  request.mutable_output()->set_echo_prompt_tokens(true);
  request.set_request_id("same");
  const Stream stream = Generate(server_.inference(), request);

  grpc::ClientContext context;
  v1::GenerateOnceResponse once;
  const grpc::Status status = server_.inference().GenerateOnce(&context, request, &once);

  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(once.text(), stream.text);
  EXPECT_EQ(
      std::vector<int32_t>(once.token_ids().begin(), once.token_ids().end()), stream.token_ids
  );
  EXPECT_EQ(once.logprobs_size(), 4);
  EXPECT_THAT(stream.logprobs, SizeIs(4));
  EXPECT_EQ(once.finished().eos_token_id(), FakeTokenizer::kEos);
  EXPECT_EQ(once.finished().request_id(), "same");
  EXPECT_THAT(once.finished().prompt_token_ids(), ElementsAre('p'));
}

TEST_F(InferenceServiceTest, TakesAnExplicitZeroOnTheWireAsGreedy) {
  FakeEngine& engine = server_.SetReady({'a'});
  v1::GenerateRequest request = ShortRequest(1);
  Generate(server_.inference(), request);
  const float by_default = engine.LastRequest().sampling.temperature;
  request.mutable_sampling()->set_temperature(0);
  Generate(server_.inference(), request);

  EXPECT_EQ(by_default, 0.75F);
  EXPECT_EQ(engine.LastRequest().sampling.temperature, 0);
}

TEST_F(InferenceServiceTest, ReturnsTheSeedThatItDrewOrWasGiven) {
  FakeEngine& engine = server_.SetReady({'a'});
  v1::GenerateRequest request = ShortRequest(1);
  const Stream drawn = Generate(server_.inference(), request);
  const uint64_t drawn_seed = engine.LastRequest().sampling.seed;
  request.mutable_sampling()->set_seed(UINT64_MAX);
  const Stream given = Generate(server_.inference(), request);

  EXPECT_EQ(drawn.finished.at(0).seed(), drawn_seed);
  EXPECT_EQ(given.finished.at(0).seed(), UINT64_MAX);
}

TEST_F(InferenceServiceTest, DropsTheRequestOfAClientThatCancels) {
  FakeEngine& engine = server_.SetReady({'a'});
  engine.HoldAfter(1);
  grpc::ClientContext context;
  const auto reader = server_.inference().Generate(&context, ShortRequest(9));
  engine.WaitUntilSubmitted(1);

  context.TryCancel();

  EXPECT_EQ(ReadStream(*reader).status.error_code(), grpc::StatusCode::CANCELLED);
  engine.WaitUntilIdle();
}

TEST_F(InferenceServiceTest, DropsTheRequestOfAUnaryClientThatIsOutOfTime) {
  FakeEngine& engine = server_.SetReady({'a'});
  engine.HoldAfter(1);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(50));
  v1::GenerateOnceResponse response;

  const grpc::Status status =
      server_.inference().GenerateOnce(&context, ShortRequest(9), &response);

  EXPECT_EQ(status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  engine.WaitUntilIdle();
}

TEST_F(InferenceServiceTest, PassesTheClientsDeadlineToTheEngine) {
  FakeEngine& engine = server_.SetReady({'a'});
  const Clock::time_point before = Clock::now();
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::hours(2));
  const auto reader = server_.inference().Generate(&context, ShortRequest(1));
  ReadStream(*reader);
  const auto with_deadline = engine.LastRequest().deadline;
  Generate(server_.inference(), ShortRequest(1));

  ASSERT_TRUE(with_deadline.has_value());
  EXPECT_GT(*with_deadline, before + std::chrono::minutes(119));
  EXPECT_LT(*with_deadline, before + std::chrono::minutes(121));
  EXPECT_FALSE(engine.LastRequest().deadline.has_value());
}

TEST_F(InferenceServiceTest, EndsWithTheEnginesErrorAfterWhatCameBefore) {
  server_.SetReady({'a'}).FailAfter(2, Internal("logits are not finite"));

  const Stream stream = Generate(server_.inference(), ShortRequest(9));

  EXPECT_EQ(stream.text, "aa");
  EXPECT_EQ(stream.status.error_code(), grpc::StatusCode::INTERNAL);
  EXPECT_EQ(stream.status.error_message(), "logits are not finite");
  EXPECT_THAT(stream.finished, IsEmpty());
}

TEST_F(InferenceServiceTest, PassesTheEnginesRefusalOnAndForgetsTheId) {
  FakeEngine& engine = server_.SetReady({'a'});
  engine.RefuseWith(ResourceExhausted("256 requests wait already"));
  v1::GenerateRequest request = ShortRequest(1);
  request.set_request_id("mine");

  const Stream refused = Generate(server_.inference(), request);
  engine.RefuseWith(OkStatus());
  const Stream taken = Generate(server_.inference(), request);

  EXPECT_EQ(refused.status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(refused.status.error_message(), "256 requests wait already");
  EXPECT_TRUE(taken.status.ok());
}

TEST_F(InferenceServiceTest, RefusesARequestIdThatIsRunning) {
  FakeEngine& engine = server_.SetReady({'a'});
  engine.HoldAfter(0);
  v1::GenerateRequest request = ShortRequest(1);
  request.set_request_id("mine");
  grpc::ClientContext context;
  const auto reader = server_.inference().Generate(&context, request);
  engine.WaitUntilSubmitted(1);

  const Stream second = Generate(server_.inference(), request);
  engine.Release();

  EXPECT_EQ(second.status.error_code(), grpc::StatusCode::ALREADY_EXISTS);
  EXPECT_TRUE(ReadStream(*reader).status.ok());
}

TEST_F(InferenceServiceTest, TakesARequestIdAgainAsSoonAsItsEndIsRead) {
  server_.SetReady({'a'});
  v1::GenerateRequest request = ShortRequest(1);
  request.set_request_id("mine");

  for (int i = 0; i < 50; ++i) {
    EXPECT_TRUE(Generate(server_.inference(), request).status.ok());
  }
}

TEST_F(InferenceServiceTest, AttachesTheFieldOfABadRequest) {
  server_.SetReady({'a'});
  v1::GenerateRequest request = ShortRequest(1);
  request.mutable_sampling()->set_top_p(2);

  const grpc::Status status = Generate(server_.inference(), request).status;

  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  v1::ErrorStatus details;
  ASSERT_TRUE(details.ParseFromString(status.error_details()));
  EXPECT_EQ(details.details_size(), 1);
}

TEST_F(InferenceServiceTest, SaysWhichStringOnTheWireIsNoUtf8AndLivesOn) {
  server_.SetReady({'a'});
  v1::GenerateRequest request;
  request.set_prompt_text("a\xFF");

  grpc::ClientContext context;
  v1::GenerateOnceResponse response;
  const grpc::Status once = server_.inference().GenerateOnce(&context, request, &response);
  const grpc::Status streamed = Generate(server_.inference(), request).status;

  for (const grpc::Status& status : {once, streamed}) {
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_THAT(status.error_message(), HasSubstr("prompt_text is not valid UTF-8 at byte 1"));
  }
  EXPECT_TRUE(Generate(server_.inference(), ShortRequest(1)).status.ok());
}

TEST_F(InferenceServiceTest, TokenizesAndDetokenizes) {
  server_.SetReady({'a'});
  v1::TokenizeRequest text;
  text.set_text("hé");
  text.set_add_bos(true);
  v1::TokenizeResponse tokens;
  grpc::ClientContext tokenize;
  ASSERT_TRUE(server_.inference().Tokenize(&tokenize, text, &tokens).ok());

  v1::DetokenizeRequest ids;
  *ids.mutable_token_ids() = tokens.token_ids();
  v1::DetokenizeResponse back;
  grpc::ClientContext detokenize;
  ASSERT_TRUE(server_.inference().Detokenize(&detokenize, ids, &back).ok());

  EXPECT_THAT(tokens.token_ids(), ElementsAre(FakeTokenizer::kBos, 'h', 0xC3, 0xA9));
  EXPECT_EQ(tokens.pieces(0), "<s>");
  EXPECT_EQ(back.text(), "hé");
}

TEST_F(InferenceServiceTest, NamesTheFieldOfATokenThatDoesNotExist) {
  server_.SetReady({'a'});
  v1::DetokenizeRequest ids;
  ids.add_token_ids(-5);
  v1::DetokenizeResponse back;
  grpc::ClientContext context;

  const grpc::Status status = server_.inference().Detokenize(&context, ids, &back);

  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("token_ids cannot be decoded: token id -5"));
}

TEST_F(InferenceServiceTest, DescribesTheModelUnlessAskedForAnother) {
  server_.SetReady({'a'});
  v1::GetModelInfoRequest request;
  v1::GetModelInfoResponse response;
  grpc::ClientContext known;
  const grpc::Status found = server_.inference().GetModelInfo(&known, request, &response);
  request.set_model("other");
  grpc::ClientContext unknown;
  v1::GetModelInfoResponse nothing;
  const grpc::Status missing = server_.inference().GetModelInfo(&unknown, request, &nothing);

  EXPECT_TRUE(found.ok());
  EXPECT_EQ(response.model(), "fake");
  EXPECT_EQ(missing.error_code(), grpc::StatusCode::NOT_FOUND);
}

}  // namespace
}  // namespace switchyard
