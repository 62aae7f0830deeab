#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "tests/engine/driven_engine.h"
#include "tests/support/test_devices.h"

namespace switchyard {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::SizeIs;

// What a sink heard of one position.
struct TracedToken {
  bool cached = false;
  std::vector<int32_t> expert_ids = {};  // of all routers in order
  std::vector<float> weights = {};

  bool operator==(const TracedToken&) const = default;
};

// Keeps the routing of each completion by position; fails when it does not come position after
// position.
class TracingSink final : public TokenSink {
 public:
  explicit TracingSink(size_t completions = 1) : traces(completions), tokens(completions) {}

  void OnRouting(const RoutingEvent& event) override {
    std::vector<TracedToken>& trace = traces.at(static_cast<size_t>(event.completion));
    EXPECT_EQ(static_cast<size_t>(event.first_token), trace.size());
    EXPECT_EQ(event.cached, event.routers.empty());
    for (int32_t i = 0; i < event.tokens; ++i) {
      TracedToken& token = trace.emplace_back(TracedToken{.cached = event.cached});
      for (const RoutedTokens& router : event.routers) {
        const auto width = static_cast<size_t>(router.heads) * static_cast<size_t>(router.top_k);
        ASSERT_EQ(router.expert_ids.size(), width * static_cast<size_t>(event.tokens));
        ASSERT_EQ(router.weights.size(), router.expert_ids.size());
        const auto ids = router.expert_ids.subspan(static_cast<size_t>(i) * width, width);
        const auto weights = router.weights.subspan(static_cast<size_t>(i) * width, width);
        token.expert_ids.insert(token.expert_ids.end(), ids.begin(), ids.end());
        token.weights.insert(token.weights.end(), weights.begin(), weights.end());
      }
    }
  }
  Verdict OnToken(const TokenEvent& event) override {
    tokens.at(static_cast<size_t>(event.completion)).push_back(event.id);
    return Verdict::kContinue;
  }
  void OnFinished(const FinishEvent& event) override { finished.push_back(event.reason); }

  std::vector<std::vector<TracedToken>> traces;
  std::vector<std::vector<int32_t>> tokens;
  std::vector<FinishReason> finished;
};

GenerationRequest Traced(const std::shared_ptr<TracingSink>& sink, GenerationRequest request) {
  request.trace_routing = true;
  request.sink = sink;
  return request;
}

// The trace of a request that is alone, and finds nothing in a cache.
std::vector<TracedToken> TraceAlone(
    const DrivenEngine::Settings& settings, std::vector<int32_t> prompt, int32_t max_tokens
) {
  DrivenEngine engine(settings);
  const auto sink = std::make_shared<TracingSink>();
  engine.AddAsItIs(Traced(sink, GreedyRequest(std::move(prompt), max_tokens)));
  engine.RunAll();
  return sink->traces[0];
}

std::vector<int32_t> PromptOf(int32_t first, size_t tokens) {
  std::vector<int32_t> prompt = Prompt(tokens);
  prompt[0] = first;
  return prompt;
}

class RoutingTraceOf : public ::testing::TestWithParam<TinyFamily> {};

TEST_P(RoutingTraceOf, HasEachTokenOnceButTheLast) {
  // Two chunks of prefill: a step has 16 tokens.
  const std::vector<TracedToken> trace = TraceAlone({.family = GetParam()}, Prompt(21), 5);

  ASSERT_THAT(trace, SizeIs(25));
  for (const TracedToken& token : trace) {
    EXPECT_FALSE(token.cached);
    EXPECT_EQ(token.expert_ids.size(), trace[0].expert_ids.size());
    EXPECT_GT(token.expert_ids.size(), 0);
  }
}

TEST_P(RoutingTraceOf, IsTheSameInAnyCompany) {
  DrivenEngine engine({.family = GetParam()});
  const auto sink = std::make_shared<TracingSink>();
  const auto other = std::make_shared<TracingSink>();
  const auto untraced = engine.Add(GreedyRequest(PromptOf(5, 9), 12));
  engine.AddAsItIs(Traced(other, GreedyRequest(PromptOf(7, 30), 3)));
  engine.AddAsItIs(Traced(sink, GreedyRequest(PromptOf(3, 21), 5)));

  engine.RunAll();

  EXPECT_EQ(sink->traces[0], TraceAlone({.family = GetParam()}, PromptOf(3, 21), 5));
  EXPECT_EQ(other->traces[0], TraceAlone({.family = GetParam()}, PromptOf(7, 30), 3));
  EXPECT_EQ(untraced->tokens.size(), 12);
}

TEST_P(RoutingTraceOf, IsTheSameOnEveryBackend) {
  const std::vector<TracedToken> expected =
      TraceAlone({.family = GetParam(), .device = "reference"}, Prompt(11), 3);

  for (const std::string& backend : FastBackendNames()) {
    const std::vector<TracedToken> trace =
        TraceAlone({.family = GetParam(), .device = DeviceOf(backend)}, Prompt(11), 3);
    ASSERT_EQ(trace.size(), expected.size()) << backend;
    for (size_t i = 0; i < trace.size(); ++i) {
      EXPECT_EQ(trace[i].expert_ids, expected[i].expert_ids) << backend << " position " << i;
      EXPECT_THAT(
          trace[i].weights, ::testing::Pointwise(::testing::FloatNear(1e-5F), expected[i].weights)
      ) << backend;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Families, RoutingTraceOf, ::testing::Values(TinyFamily::kJetMoe, TinyFamily::kSwitchHead)
);

TEST(RoutingTrace, NamesTheRoutersAndAddsGatesUpToOne) {
  class FirstEvent final : public TokenSink {
   public:
    void OnRouting(const RoutingEvent& event) override {
      for (const RoutedTokens& router : event.routers) {
        if (event.first_token == 0) {
          names.push_back(Concat(router.layer, NameOf(router.kind)));
          sizes.push_back(router.expert_ids.size());
          sums.push_back(router.weights[0] + router.weights[1]);
        }
      }
    }
    Verdict OnToken(const TokenEvent& /*event*/) override { return Verdict::kContinue; }
    void OnFinished(const FinishEvent& /*event*/) override {}
    std::vector<std::string> names;
    std::vector<size_t> sizes;
    std::vector<float> sums;
  };
  DrivenEngine engine({.family = TinyFamily::kJetMoe});
  const auto sink = std::make_shared<FirstEvent>();
  GenerationRequest request = GreedyRequest({3, 1, 4}, 1);
  request.trace_routing = true;
  request.sink = sink;
  engine.AddAsItIs(std::move(request));

  engine.RunAll();

  EXPECT_THAT(sink->names, ElementsAre("0attn", "0ffn", "1attn", "1ffn"));
  EXPECT_THAT(sink->sizes, Each(6));  // 3 tokens, 2 experts each
  EXPECT_THAT(sink->sums, Each(::testing::FloatNear(1, 1e-6F)));
}

TEST(RoutingTrace, IsNotTornByPreemption) {
  // Three requests of 7 blocks each in a cache of 10.
  DrivenEngine engine(
      {.limits = {.max_step_tokens = 16, .max_running = 4, .block_tokens = 4, .growth_tokens = 0},
       .blocks = 10}
  );
  std::vector<std::shared_ptr<TracingSink>> sinks;
  for (int32_t first = 0; first < 3; ++first) {
    sinks.push_back(std::make_shared<TracingSink>());
    engine.AddAsItIs(Traced(sinks.back(), GreedyRequest(PromptOf(first, 9), 18)));
  }

  engine.RunAll();

  EXPECT_GT(engine.core().Load().preempted_total, 0);
  for (int32_t first = 0; first < 3; ++first) {
    EXPECT_EQ(sinks[static_cast<size_t>(first)]->traces[0], TraceAlone({}, PromptOf(first, 9), 18))
        << "request " << first;
  }
}

TEST(RoutingTrace, MarksWhatThePrefixCacheHad) {
  DrivenEngine engine({});
  engine.Add(GreedyRequest(Prompt(14), 1));
  engine.RunAll();
  const auto sink = std::make_shared<TracingSink>();
  engine.AddAsItIs(Traced(sink, GreedyRequest(Prompt(14), 4)));

  engine.RunAll();

  const std::vector<TracedToken> whole = TraceAlone({}, Prompt(14), 4);
  ASSERT_THAT(sink->traces[0], SizeIs(17));
  for (size_t i = 0; i < 17; ++i) {
    // Three full blocks of 4.
    EXPECT_EQ(sink->traces[0][i], i < 12 ? TracedToken{.cached = true} : whole[i]) << i;
  }
}

TEST(RoutingTrace, OfEachCompletionIsItsOwn) {
  DrivenEngine engine({});
  const auto sink = std::make_shared<TracingSink>(2);
  GenerationRequest request = Traced(sink, GreedyRequest(Prompt(14), 4));
  request.completions = 2;
  request.sampling.temperature = 2;
  engine.AddAsItIs(std::move(request));

  engine.RunAll();

  ASSERT_THAT(sink->traces[0], SizeIs(17));
  ASSERT_THAT(sink->traces[1], SizeIs(17));
  EXPECT_NE(sink->tokens[0], sink->tokens[1]);
  EXPECT_FALSE(sink->traces[0][0].cached);
  EXPECT_TRUE(sink->traces[1][0].cached);
  // The first token of the prompt that the second computes is the same token.
  EXPECT_EQ(sink->traces[1][12], sink->traces[0][12]);
  EXPECT_NE(sink->traces[1][16].expert_ids, sink->traces[0][16].expert_ids);
}

}  // namespace
}  // namespace switchyard
