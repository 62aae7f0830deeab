#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include "tests/end_to_end/model_server.h"
#include "tests/server/running_server.h"

// A request gives the same tokens and log-probabilities, bit for bit, whatever else the server does
// and however it was started. Over gRPC with the trained models.

namespace switchyard {
namespace {

constexpr int kRequests = 64;

// Prompts of 1 to 60 tokens, every other one with the same beginning of up to 24; sampled, greedy,
// several completions, beam searches and scored prompts.
v1::GenerateRequest RequestOf(int number) {
  v1::GenerateRequest request;
  const int prompt_tokens = 1 + number * 13 % 60;
  for (int i = 0; i < prompt_tokens; ++i) {
    const bool is_common = number % 2 == 0 && i < 24;
    request.mutable_prompt_tokens()->add_ids(5 + (is_common ? i * 7 : number * 31 + i * i) % 60);
  }
  request.mutable_stopping()->set_max_tokens(6 + number % 19);
  request.mutable_stopping()->set_ignore_eos(number % 3 != 0);
  request.mutable_output()->set_top_logprobs(0);
  request.mutable_scheduling()->set_priority(number % 5 - 2);
  if (number % 8 == 5) {
    request.mutable_beam_search()->set_width(3);
    request.set_n(2);
    return request;
  }
  request.mutable_output()->set_top_logprobs(number % 3);
  v1::SamplingParameters& sampling = *request.mutable_sampling();
  sampling.set_seed(static_cast<uint64_t>(number) * 1000003);
  sampling.set_temperature(number % 4 == 0 ? 0.0F : 0.5F + 0.25F * static_cast<float>(number % 4));
  sampling.set_repetition_penalty(number % 5 == 1 ? 1.25F : 1.0F);
  if (number % 8 == 6) {
    request.set_n(3);
  }
  if (number % 8 == 7) {
    request.mutable_output()->set_prompt_top_logprobs(1);
  }
  return request;
}

// All that must not change.
std::vector<std::string> ContentOf(const Stream& stream) {
  std::vector<std::string> content = {stream.status.error_message()};
  for (const v1::Completion& completion : stream.completions) {
    content.push_back(completion.SerializeAsString());
  }
  for (const v1::TokenLogprobs& token : stream.prompt_logprobs) {
    content.push_back(token.SerializeAsString());
  }
  return content;
}

std::vector<Stream> AllAtOnce(ModelServer& server) {
  std::vector<Stream> streams(kRequests);
  std::vector<std::thread> clients;
  for (int number = 0; number < kRequests; ++number) {
    clients.emplace_back([&server, &streams, number] {
      streams[static_cast<size_t>(number)] = Generate(server.inference(), RequestOf(number));
    });
  }
  for (std::thread& client : clients) {
    client.join();
  }
  return streams;
}

v1::GetLoadResponse Load(ModelServer& server) {
  v1::GetLoadResponse load;
  grpc::ClientContext context;
  EXPECT_TRUE(server.inference().GetLoad(&context, {}, &load).ok());
  return load;
}

class Invariance : public ::testing::TestWithParam<std::string> {
 protected:
  // One at a time on one thread, each prompt computed in one step, nothing cached.
  void RunAlone() {
    ModelServer server(
        GetParam(),
        {.threads = 1, .engine = {.limits = {.max_step_tokens = 256}, .prefix_cache = false}}
    );
    bytes_per_token_ = server.info().kv_bytes_per_token();
    for (int number = 0; number < kRequests; ++number) {
      alone_.push_back(Generate(server.inference(), RequestOf(number)));
      ASSERT_TRUE(alone_.back().status.ok()) << alone_.back().status.error_message();
    }
  }

  void ExpectAsAlone(const std::vector<Stream>& streams) {
    for (size_t number = 0; number < kRequests; ++number) {
      EXPECT_EQ(ContentOf(streams[number]), ContentOf(alone_[number])) << "request " << number;
    }
  }

  std::vector<Stream> alone_;
  int64_t bytes_per_token_ = 0;
};

TEST_P(Invariance, HoldsAmong63OthersInChunksOnTwoThreadsWithPrefixHits) {
  RunAlone();
  ModelServer server(
      GetParam(), {.threads = 2, .engine = {.limits = {.max_step_tokens = 65, .block_tokens = 8}}}
  );

  const std::vector<Stream> first = AllAtOnce(server);
  const std::vector<Stream> second = AllAtOnce(server);

  ExpectAsAlone(first);
  ExpectAsAlone(second);
  int32_t cached_tokens = 0;
  for (const Stream& stream : second) {
    cached_tokens += stream.finished.at(0).usage().cached_prompt_tokens();
  }
  EXPECT_GT(cached_tokens, 300);
  EXPECT_EQ(Load(server).preemptions_total(), 0);
}

TEST_P(Invariance, HoldsAfterPreemption) {
  RunAlone();
  // The longest request, a prompt of 60 and 23 tokens, needs 11 blocks; three beams need no more
  // than 33.
  const int64_t blocks = 40;
  ModelServer server(
      GetParam(),
      {.threads = 2,
       .engine =
           {.limits = {.max_step_tokens = 48, .block_tokens = 8, .growth_tokens = 0},
            .kv_cache_bytes = blocks * 8 * bytes_per_token_}}
  );

  const std::vector<Stream> streams = AllAtOnce(server);

  ExpectAsAlone(streams);
  const v1::GetLoadResponse load = Load(server);
  EXPECT_GT(load.preemptions_total(), 0);
  EXPECT_EQ(load.kv_blocks_total(), blocks);
  EXPECT_EQ(load.kv_blocks_used(), 0);
}

TEST_P(Invariance, HoldsWithThreeTokensAStep) {
  RunAlone();
  ModelServer server(
      GetParam(), {.threads = 1, .engine = {.limits = {.max_step_tokens = 3, .block_tokens = 5}}}
  );

  ExpectAsAlone(AllAtOnce(server));
}

INSTANTIATE_TEST_SUITE_P(
    Models,
    Invariance,
    ::testing::Values("bible-moa", "bible-switchhead"),
    [](const auto& model) { return std::string(model.param == "bible-moa" ? "Moa" : "SwitchHead"); }
);

}  // namespace
}  // namespace switchyard
