#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/end_to_end/model_server.h"
#include "tests/server/running_server.h"

// Several completions of one prompt, and how a request shares what others computed, over gRPC with
// the trained models.

namespace switchyard {
namespace {

using ::testing::SizeIs;

// 21 tokens: two full blocks of 8 and a part of a third.
v1::GenerateRequest Request() {
  v1::GenerateRequest request;
  for (int32_t i = 0; i < 21; ++i) {
    request.mutable_prompt_tokens()->add_ids(5 + i * i % 47);
  }
  request.mutable_stopping()->set_max_tokens(12);
  request.mutable_stopping()->set_ignore_eos(true);
  return request;
}

v1::GenerateRequest SampledRequest(uint64_t seed) {
  v1::GenerateRequest request = Request();
  request.mutable_sampling()->set_temperature(0.9F);
  request.mutable_sampling()->set_seed(seed);
  request.mutable_output()->set_top_logprobs(2);
  return request;
}

v1::GenerateRequest BeamRequest(int32_t width) {
  v1::GenerateRequest request = Request();
  request.mutable_beam_search()->set_width(width);
  request.mutable_output()->set_top_logprobs(0);
  return request;
}

std::vector<std::string> BytesOf(const std::vector<v1::Completion>& completions) {
  std::vector<std::string> bytes;
  std::transform(
      completions.begin(),
      completions.end(),
      std::back_inserter(bytes),
      [](const v1::Completion& completion) { return completion.SerializeAsString(); }
  );
  return bytes;
}

class Completions : public ::testing::TestWithParam<std::string> {
 protected:
  Stream Get(const v1::GenerateRequest& request) {
    Stream stream = Generate(server_.inference(), request);
    EXPECT_TRUE(stream.status.ok()) << stream.status.error_message();
    EXPECT_THAT(stream.finished, SizeIs(1));
    stream.finished.resize(1);
    return stream;
  }

  int32_t CachedTokens(const v1::GenerateRequest& request) {
    return Get(request).finished[0].usage().cached_prompt_tokens();
  }

  ModelServer server_{GetParam()};
};

TEST_P(Completions, AreWhatRequestsWithTheNextSeedsGive) {
  v1::GenerateRequest request = SampledRequest(41);
  request.set_n(3);
  const Stream together = Get(request);

  std::vector<v1::Completion> apart;
  for (uint64_t seed = 41; seed < 44; ++seed) {
    apart.push_back(Get(SampledRequest(seed)).completions.at(0));
  }

  EXPECT_EQ(BytesOf(together.completions), BytesOf(apart));
  EXPECT_NE(apart[0].text(), apart[1].text());
  EXPECT_NE(apart[1].text(), apart[2].text());
  EXPECT_EQ(together.finished[0].seed(), 41U);
  EXPECT_EQ(together.finished[0].usage().completion_tokens(), 36);
}

TEST_P(Completions, AreTheSameInOneAnswer) {
  v1::GenerateRequest request = SampledRequest(7);
  request.set_n(3);
  const Stream stream = Get(request);

  v1::GenerateOnceResponse once;
  grpc::ClientContext context;
  ASSERT_TRUE(server_.inference().GenerateOnce(&context, request, &once).ok());

  v1::Completion first;
  first.set_text(once.text());
  *first.mutable_token_ids() = once.token_ids();
  *first.mutable_logprobs() = once.logprobs();
  std::vector<v1::Completion> completions = {first};
  completions.insert(
      completions.end(), once.further_completions().begin(), once.further_completions().end()
  );
  EXPECT_EQ(BytesOf(completions), BytesOf(stream.completions));
}

TEST_P(Completions, AreTheBestOfThoseThatWereSampled) {
  v1::GenerateRequest request = SampledRequest(100);
  request.set_n(6);
  const Stream all = Get(request);
  request.set_n(2);
  request.set_best_of(6);

  const Stream best = Get(request);

  // All have 12 tokens, so that the sum ranks as the mean does.
  std::vector<size_t> order = {0, 1, 2, 3, 4, 5};
  std::stable_sort(order.begin(), order.end(), [&all](size_t a, size_t b) {
    const auto& ends = all.finished[0].completions();
    return ends.Get(static_cast<int>(a)).logprob_sum() >
           ends.Get(static_cast<int>(b)).logprob_sum();
  });
  EXPECT_EQ(
      BytesOf(best.completions), BytesOf({all.completions[order[0]], all.completions[order[1]]})
  );
  EXPECT_EQ(best.finished[0].completions_size(), 2);
}

TEST_P(Completions, OfABeamSearchAreTheSameEachTimeAndAtLeastAsLikelyAsGreedyOnes) {
  v1::GenerateRequest greedy = Request();
  greedy.mutable_sampling()->set_temperature(0);
  const double greedy_sum = Get(greedy).finished[0].completions(0).logprob_sum();
  v1::GenerateRequest request = BeamRequest(4);
  request.set_n(3);

  const Stream first = Get(request);
  const Stream second = Get(request);

  EXPECT_EQ(BytesOf(first.completions), BytesOf(second.completions));
  ASSERT_EQ(first.finished[0].completions_size(), 3);
  double above = first.finished[0].completions(0).logprob_sum();
  EXPECT_GE(above, greedy_sum);
  for (const v1::CompletionEnd& end : first.finished[0].completions()) {
    EXPECT_EQ(end.completion_tokens(), 12);
    EXPECT_LE(end.logprob_sum(), above);
    above = end.logprob_sum();
  }
}

TEST_P(Completions, OfOneBeamAreTheGreedyOne) {
  v1::GenerateRequest greedy = Request();
  greedy.mutable_sampling()->set_temperature(0);
  greedy.mutable_output()->set_top_logprobs(0);

  EXPECT_EQ(BytesOf(Get(BeamRequest(1)).completions), BytesOf(Get(greedy).completions));
}

TEST_P(Completions, ReuseThePromptOfARequestBefore) {
  v1::GenerateRequest request = SampledRequest(3);
  request.mutable_scheduling()->set_priority(5);
  request.mutable_scheduling()->set_cache_salt("tenant");

  const Stream first = Get(request);
  const Stream second = Get(request);

  EXPECT_EQ(first.finished[0].usage().cached_prompt_tokens(), 0);
  EXPECT_EQ(second.finished[0].usage().cached_prompt_tokens(), 16);
  EXPECT_EQ(BytesOf(second.completions), BytesOf(first.completions));
}

TEST_P(Completions, ReuseNothingUnderAnotherSaltOrWhenToldNotTo) {
  const v1::GenerateRequest request = SampledRequest(3);
  Get(request);
  v1::GenerateRequest salted = request;
  salted.mutable_scheduling()->set_cache_salt("tenant");
  v1::GenerateRequest bypassing = request;
  bypassing.mutable_scheduling()->set_bypass_prefix_cache(true);

  EXPECT_EQ(CachedTokens(salted), 0);
  EXPECT_EQ(CachedTokens(bypassing), 0);
  EXPECT_EQ(CachedTokens(request), 16);
}

TEST_P(Completions, LeaveNothingToOthersWhenToldNotTo) {
  v1::GenerateRequest bypassing = SampledRequest(3);
  bypassing.mutable_scheduling()->set_bypass_prefix_cache(true);
  Get(bypassing);

  EXPECT_EQ(CachedTokens(SampledRequest(3)), 0);
}

TEST_P(Completions, ReuseNothingOnAServerWithoutAPrefixCache) {
  ModelServerOptions options;
  options.engine.prefix_cache = false;
  ModelServer server(GetParam(), options);
  v1::GenerateRequest request = SampledRequest(3);
  request.set_n(2);
  const Stream with_cache = Get(request);

  Generate(server.inference(), request);
  const Stream again = Generate(server.inference(), request);

  ASSERT_THAT(again.finished, SizeIs(1));
  EXPECT_EQ(again.finished[0].usage().cached_prompt_tokens(), 0);
  EXPECT_EQ(BytesOf(again.completions), BytesOf(with_cache.completions));
}

INSTANTIATE_TEST_SUITE_P(
    Models,
    Completions,
    ::testing::Values("bible-moa", "bible-switchhead"),
    [](const auto& model) { return std::string(model.param == "bible-moa" ? "Moa" : "SwitchHead"); }
);

}  // namespace
}  // namespace switchyard
