#include "server/generation/routing_trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "server/generation/token_stream.h"
#include "server/validation/request_validation.h"
#include "tests/server/fake_tokenizer.h"
#include "tests/server/running_server.h"

namespace switchyard {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// Of `tokens` tokens, each of which went to experts 2 and 5.
class Event {
 public:
  Event(int32_t first_token, int32_t tokens) {
    for (int32_t i = 0; i < tokens; ++i) {
      ids_.push_back(2);
      ids_.push_back(5);
      weights_.push_back(0.75F);
      weights_.push_back(0.25F);
    }
    routers_[0] = {
        .layer = 3,
        .kind = RouterKind::kAttentionValue,
        .heads = 2,
        .top_k = 1,
        .expert_ids = ids_,
        .weights = weights_};
    event_.first_token = first_token;
    event_.tokens = tokens;
    event_.routers = routers_;
  }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  const RoutingEvent& get() const { return event_; }

 private:
  std::vector<int32_t> ids_;
  std::vector<float> weights_;
  std::array<RoutedTokens, 1> routers_;
  RoutingEvent event_;
};

RoutingEvent Cached(int32_t first_token, int32_t tokens) {
  return {.first_token = first_token, .tokens = tokens, .cached = true};
}

TEST(RoutingTrace, DescribesEachRouter) {
  const Event event(7, 1);

  const v1::RoutingTrace trace = DescribeRouting(event.get());

  EXPECT_EQ(trace.first_position(), 7);
  EXPECT_EQ(trace.tokens(), 1);
  ASSERT_EQ(trace.routers_size(), 1);
  EXPECT_EQ(trace.routers(0).layer(), 3);
  EXPECT_EQ(trace.routers(0).kind(), "attn_v");
  EXPECT_EQ(trace.routers(0).heads(), 2);
  EXPECT_EQ(trace.routers(0).top_k(), 1);
  EXPECT_THAT(trace.routers(0).expert_ids(), ElementsAre(2, 5));
  EXPECT_THAT(trace.routers(0).weights(), ElementsAre(0.75F, 0.25F));
}

TEST(RoutingTrace, JoinsRunsThatGoOnAndNoOthers) {
  RoutingTraces traces;
  AppendTrace(DescribeRouting(Cached(0, 4)), traces);
  AppendTrace(DescribeRouting(Event(4, 2).get()), traces);
  AppendTrace(DescribeRouting(Event(6, 1).get()), traces);
  v1::RoutingTrace other = DescribeRouting(Event(7, 1).get());
  other.set_completion(1);
  AppendTrace(other, traces);

  ASSERT_EQ(traces.size(), 3);
  EXPECT_TRUE(traces[0].cached());
  EXPECT_EQ(traces[1].first_position(), 4);
  EXPECT_EQ(traces[1].tokens(), 3);
  EXPECT_THAT(traces[1].routers(0).expert_ids(), ElementsAre(2, 5, 2, 5, 2, 5));
  EXPECT_EQ(traces[1].routers(0).weights_size(), 6);
  EXPECT_EQ(traces[2].completion(), 1);
}

TEST(RoutingTrace, IsTakenFromAStreamWithTheTokens) {
  FakeTokenizer tokenizer({});
  int wakes = 0;
  TokenStream stream(&tokenizer, {}, [&wakes] { ++wakes; });

  stream.OnRouting(Event(0, 2).get());
  stream.OnRouting(Event(2, 1).get());
  const TokenStream::Taken first = stream.Take();
  stream.OnRouting(Event(3, 1).get());
  const TokenStream::Taken second = stream.Take();

  EXPECT_EQ(wakes, 2);
  ASSERT_EQ(first.parts.size(), 1);
  ASSERT_EQ(first.parts[0].routing.size(), 1);
  EXPECT_EQ(first.parts[0].routing[0].tokens(), 3);
  ASSERT_EQ(second.parts.size(), 1);
  EXPECT_EQ(second.parts[0].routing[0].first_position(), 3);
}

TEST(RoutingTrace, CountsTowardsWhatAStreamHoldsForItsClient) {
  FakeTokenizer tokenizer({});
  TokenStreamOptions options;
  options.max_bytes = 100;
  TokenStream stream(&tokenizer, options, [] {});
  TokenEvent token;
  token.id = 'a';

  stream.OnRouting(Event(0, 3).get());
  const Verdict before = stream.OnToken(token);
  stream.OnRouting(Event(3, 6).get());
  const Verdict after = stream.OnToken(token);

  EXPECT_EQ(before, Verdict::kContinue);
  EXPECT_EQ(after, Verdict::kStop);
}

// Two routers with a choice: 2 x 3 and 1 x 1 experts of a token; one has none.
std::unique_ptr<LoadedModel> SparseModel() {
  std::unique_ptr<LoadedModel> model = MakeFakeModel({'x'}, {});
  struct Sizes {
    int32_t heads, experts, top_k;
  };
  for (const Sizes& sizes : {Sizes{2, 4, 3}, Sizes{1, 4, 1}, Sizes{1, 1, 1}}) {
    v1::RouterInfo& router = *model->info.add_routers();
    router.set_heads(sizes.heads);
    router.set_experts(sizes.experts);
    router.set_top_k(sizes.top_k);
  }
  return model;
}

// A prompt of 1 and 4 more tokens, twice: 10 tokens x 7 experts x 8 bytes.
TEST(RoutingTrace, IsRefusedWhenItMayBeLargerThanTheServerGives) {
  const std::unique_ptr<LoadedModel> model = SparseModel();
  v1::GenerateRequest request = ShortRequest(4);
  request.set_n(2);
  request.mutable_output()->set_routing(true);

  model->limits.max_trace_bytes = 560;
  const auto taken = ValidateRequest(request, *model);
  model->limits.max_trace_bytes = 559;
  const Status refused = ValidateRequest(request, *model).status();

  ASSERT_TRUE(taken.ok()) << taken.status();
  EXPECT_TRUE(taken->generation.trace_routing);
  EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(MessageOf(refused), StartsWith("output.routing is asked for 2 completions"));
  EXPECT_THAT(MessageOf(refused), HasSubstr("together 10; this server traces at most 9 tokens"));
  EXPECT_THAT(MessageOf(refused), HasSubstr("--max-trace-bytes 559"));
}

TEST(RoutingTrace, IsNotAskedForByAnExplicitFalse) {
  const std::unique_ptr<LoadedModel> model = SparseModel();
  model->limits.max_trace_bytes = 0;
  v1::GenerateRequest request = ShortRequest(4);
  request.mutable_output()->set_routing(false);

  const auto valid = ValidateRequest(request, *model);

  ASSERT_TRUE(valid.ok()) << valid.status();
  EXPECT_FALSE(valid->generation.trace_routing);
}

TEST(RoutingTrace, IsRefusedBesideABeamSearch) {
  v1::GenerateRequest request = ShortRequest(4);
  request.mutable_output()->set_routing(true);
  request.mutable_beam_search()->set_width(2);

  const Status status = ValidateRequest(request, *SparseModel()).status();

  EXPECT_THAT(MessageOf(status), StartsWith("output.routing and beam_search are both set"));
}

}  // namespace
}  // namespace switchyard
