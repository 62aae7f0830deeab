#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include "tests/end_to_end/model_server.h"
#include "tests/server/running_server.h"

// The whole way of a request, with each model: client, gRPC, server, engine, model and back.

namespace switchyard {
namespace {

using ::testing::SizeIs;

class Serving : public ::testing::TestWithParam<std::string> {
 protected:
  // Token ids that differ from request to request and are in any vocabulary.
  static v1::GenerateRequest Request(int number, int prompt_tokens, int32_t max_tokens) {
    v1::GenerateRequest request;
    for (int i = 0; i < prompt_tokens; ++i) {
      request.mutable_prompt_tokens()->add_ids(5 + (number * 31 + i * i * 7) % 50);
    }
    request.mutable_stopping()->set_max_tokens(max_tokens);
    request.mutable_sampling()->set_temperature(0);
    return request;
  }

  v1::DetokenizeResponse Detokenize(const std::vector<int32_t>& ids) {
    v1::DetokenizeRequest request;
    request.mutable_token_ids()->Add(ids.begin(), ids.end());
    v1::DetokenizeResponse response;
    grpc::ClientContext context;
    EXPECT_TRUE(server_.inference().Detokenize(&context, request, &response).ok());
    return response;
  }

  v1::GetExpertStatsResponse ExpertStats() {
    v1::GetExpertStatsResponse response;
    grpc::ClientContext context;
    const grpc::Status status = server_.experts().GetExpertStats(&context, {}, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  }

  ModelServer server_{GetParam()};
};

// Eight kinds of sampling, from the eighth request on with restrictions besides.
v1::GenerateRequest WithSettingsOf(int number, v1::GenerateRequest request) {
  v1::SamplingParameters& sampling = *request.mutable_sampling();
  sampling.set_seed(static_cast<uint64_t>(number) * 1000003);
  sampling.set_temperature(number % 4 == 0 ? 0.0F : 0.5F + 0.25F * static_cast<float>(number % 4));
  switch (number % 8) {
    case 1:
      sampling.set_top_k(5);
      break;
    case 2:
      sampling.set_top_p(0.8F);
      break;
    case 3:
      sampling.set_min_p(0.05F);
      break;
    case 4:
      sampling.set_repetition_penalty(1.3F);
      break;
    case 5:
      sampling.set_presence_penalty(0.7F);
      sampling.set_frequency_penalty(0.3F);
      break;
    case 6:
      (*sampling.mutable_logit_bias())[7] = 4;
      break;
    default:
      request.mutable_output()->set_top_logprobs(3);
  }
  if (number >= 8) {
    sampling.set_typical_p(0.9F);
    sampling.set_no_repeat_ngram_size(2 + number % 2);
    sampling.add_bad_word_tokens()->add_ids(number);
    for (int32_t id = number % 2; id < 60; id += 2) {
      sampling.add_allowed_token_ids(id);
    }
  }
  request.mutable_stopping()->set_ignore_eos(true);
  return request;
}

// With the trained models, which have a tokenizer.
class ServingText : public Serving {};

// Prompts of 1 to 76 tokens, completions of 8 to 23.
TEST_P(Serving, SixteenStreamsTogetherGiveWhatEachGivesAlone) {
  constexpr int kStreams = 16;
  std::vector<v1::GenerateRequest> requests;
  std::vector<Stream> alone;
  for (int i = 0; i < kStreams; ++i) {
    requests.push_back(WithSettingsOf(i, Request(i, 1 + 5 * i, 8 + i)));
    alone.push_back(Generate(server_.inference(), requests.back()));
  }

  std::vector<Stream> together(kStreams);
  std::vector<std::thread> clients;
  for (size_t i = 0; i < kStreams; ++i) {
    clients.emplace_back([&, i] { together[i] = Generate(server_.inference(), requests[i]); });
  }
  for (std::thread& client : clients) {
    client.join();
  }

  for (size_t i = 0; i < kStreams; ++i) {
    ASSERT_TRUE(alone[i].status.ok()) << alone[i].status.error_message();
    ASSERT_TRUE(together[i].status.ok()) << together[i].status.error_message();
    EXPECT_THAT(alone[i].token_ids, SizeIs(8 + i)) << "stream " << i;
    EXPECT_EQ(together[i].token_ids, alone[i].token_ids) << "stream " << i;
    EXPECT_EQ(together[i].text, alone[i].text) << "stream " << i;
    ASSERT_EQ(together[i].logprobs.size(), alone[i].logprobs.size());
    for (size_t token = 0; token < alone[i].logprobs.size(); ++token) {
      EXPECT_EQ(
          together[i].logprobs[token].SerializeAsString(),
          alone[i].logprobs[token].SerializeAsString()
      ) << "stream "
        << i;
    }
  }
}

TEST_P(Serving, AnswersAtOnceWhatItWouldStream) {
  const v1::GenerateRequest request = WithSettingsOf(7, Request(7, 9, 20));
  const Stream stream = Generate(server_.inference(), request);

  grpc::ClientContext context;
  v1::GenerateOnceResponse once;
  ASSERT_TRUE(server_.inference().GenerateOnce(&context, request, &once).ok());

  EXPECT_EQ(
      std::vector<int32_t>(once.token_ids().begin(), once.token_ids().end()), stream.token_ids
  );
  EXPECT_EQ(once.text(), stream.text);
}

TEST_P(Serving, CountsWhatItUsed) {
  const Stream stream = Generate(server_.inference(), Request(1, 9, 5));

  ASSERT_THAT(stream.finished, SizeIs(1));
  const v1::Finished& finished = stream.finished[0];
  EXPECT_EQ(finished.usage().prompt_tokens(), 9);
  EXPECT_EQ(static_cast<size_t>(finished.usage().completion_tokens()), stream.token_ids.size());
  EXPECT_LE(finished.timings().queue_seconds(), finished.timings().time_to_first_token_seconds());
  EXPECT_LE(finished.timings().time_to_first_token_seconds(), finished.timings().total_seconds());
}

TEST_P(Serving, FreesTheBlocksOfAClientThatGoesAway) {
  const int32_t free_blocks = server_.engine().Load().available_blocks;
  for (int i = 0; i < 8; ++i) {
    // As long as the context allows, so that it is not over before the client goes.
    v1::GenerateRequest request = Request(i, 9, server_.info().context_tokens() - 9);
    request.mutable_stopping()->set_ignore_eos(true);
    grpc::ClientContext context;
    const auto reader = server_.inference().Generate(&context, request);
    v1::GenerateResponse first;
    reader->Read(&first);
    context.TryCancel();
    EXPECT_EQ(ReadStream(*reader).status.error_code(), grpc::StatusCode::CANCELLED);
  }

  // The server hears of a cancel after the client does; what runs after it sees its effect.
  while (server_.engine().Load().running_requests > 0) {
    EXPECT_TRUE(Generate(server_.inference(), Request(1, 1, 1)).status.ok());
  }
  EXPECT_EQ(server_.engine().Load().available_blocks, free_blocks);
}

TEST_P(Serving, CountsEachTokenOncePerChosenExpertInEveryRouter) {
  v1::GenerateRequest request = Request(3, 30, 10);
  request.mutable_stopping()->set_ignore_eos(true);
  const v1::GetExpertStatsResponse before = ExpertStats();
  ASSERT_TRUE(Generate(server_.inference(), request).status.ok());
  const v1::GetExpertStatsResponse after = ExpertStats();

  ASSERT_EQ(after.routers_size(), server_.info().routers_size());
  for (int i = 0; i < after.routers_size(); ++i) {
    const v1::RouterStats& router = after.routers(i);
    int64_t assignments = 0;
    for (const v1::ExpertStats& expert : router.stats()) {
      assignments += expert.tokens();
    }
    // 30 of the prompt, and every token but the last of the completion goes back in.
    EXPECT_EQ(router.tokens_routed() - before.routers(i).tokens_routed(), 39);
    EXPECT_EQ(assignments, router.tokens_routed() * router.top_k() * router.heads());
  }
}

TEST_P(Serving, RepeatsACompletionFromTheSeedThatItReturned) {
  v1::GenerateRequest request = Request(4, 6, 12);
  request.mutable_sampling()->set_temperature(1);
  const Stream first = Generate(server_.inference(), request);
  ASSERT_THAT(first.finished, SizeIs(1));
  request.mutable_sampling()->set_seed(first.finished[0].seed());

  EXPECT_EQ(Generate(server_.inference(), request).token_ids, first.token_ids);
}

TEST_P(Serving, LivesThroughTheOddestValuesThatAreAllowed) {
  v1::GenerateRequest request = Request(5, 3, 4);
  v1::SamplingParameters& sampling = *request.mutable_sampling();
  sampling.set_temperature(1e-45F);
  sampling.set_top_p(1e-45F);
  sampling.set_repetition_penalty(1e-45F);
  sampling.set_presence_penalty(-100);
  sampling.set_frequency_penalty(100);

  const grpc::Status odd = Generate(server_.inference(), request).status;

  EXPECT_NE(odd.error_code(), grpc::StatusCode::UNKNOWN);
  EXPECT_TRUE(Generate(server_.inference(), Request(5, 3, 4)).status.ok());
}

TEST_P(Serving, RefusesWhatCannotFitTheContext) {
  const int32_t context_tokens = server_.info().context_tokens();

  const grpc::Status status =
      Generate(server_.inference(), Request(6, 3, context_tokens - 2)).status;

  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(
      status.error_message(), ::testing::HasSubstr(Concat("lower it to ", context_tokens - 3))
  );
}

TEST_P(ServingText, StreamsTheTextOfItsTokens) {
  v1::GenerateRequest request;
  request.set_prompt_text("And God said");
  request.mutable_sampling()->set_seed(3);
  request.mutable_stopping()->set_max_tokens(40);
  request.mutable_output()->set_echo_prompt_tokens(true);
  const Stream stream = Generate(server_.inference(), request);
  ASSERT_THAT(stream.finished, SizeIs(1));

  std::vector<int32_t> ids(
      stream.finished[0].prompt_token_ids().begin(), stream.finished[0].prompt_token_ids().end()
  );
  ids.insert(ids.end(), stream.token_ids.begin(), stream.token_ids.end());

  EXPECT_EQ(Detokenize(ids).text(), Concat("And God said", stream.text));
}

TEST_P(ServingText, EndsBeforeAStopStringWhereverTokensCutIt) {
  v1::GenerateRequest request;
  request.set_prompt_text("And God said");
  request.mutable_sampling()->set_temperature(0);
  request.mutable_stopping()->set_max_tokens(30);
  const std::string whole = Generate(server_.inference(), request).text;
  ASSERT_GT(whole.size(), 40U);

  for (const size_t begin : {10, 17, 25}) {
    const std::string stop = whole.substr(begin, 7);
    request.mutable_stopping()->clear_stop_strings();
    request.mutable_stopping()->add_stop_strings(stop);
    const Stream stopped = Generate(server_.inference(), request);

    EXPECT_EQ(stopped.text, whole.substr(0, whole.find(stop)));
    ASSERT_THAT(stopped.finished, SizeIs(1));
    EXPECT_EQ(stopped.finished[0].stop_string(), stop);
  }
}

std::string TestNameOf(const ::testing::TestParamInfo<std::string>& model) {
  std::string name = model.param;
  std::replace_if(
      name.begin(),
      name.end(),
      [](char letter) { return std::isalnum(static_cast<unsigned char>(letter)) == 0; },
      '_'
  );
  return name;
}

INSTANTIATE_TEST_SUITE_P(Models, Serving, ::testing::ValuesIn(ModelNames()), TestNameOf);
INSTANTIATE_TEST_SUITE_P(
    Models, ServingText, ::testing::Values("bible-moa", "bible-switchhead"), TestNameOf
);

}  // namespace
}  // namespace switchyard
