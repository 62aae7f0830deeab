#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "kernels/backend.h"
#include "tests/cuda_host/activity.h"
#include "tests/cuda_host/device_of.h"
#include "tests/engine/driven_engine.h"
#include "tests/support/captured_log.h"

// How a step of the engine talks to the device: what it copies, launches and waits for.

namespace switchyard {
namespace {

using cuda_host::Activity;
using cuda_host::TakeActivity;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class Steps : public testing::TestWithParam<TinyFamily> {
 protected:
  static DrivenEngine::Settings Settings() { return {.family = GetParam(), .device = "cuda"}; }

  // Three requests that decode side by side, of three steps of that shape already.
  static void DecodeThree(DrivenEngine& engine) {
    for (int32_t number = 0; number < 3; ++number) {
      engine.Add(SampledRequest(number));
    }
    for (int32_t step = 0; step < 4; ++step) {
      engine.core().Step();
    }
  }

  static GenerationRequest SampledRequest(int32_t number) {
    GenerationRequest request = GreedyRequest({5, 6 + number, 7}, 20);
    request.sampling.temperature = 0.8F;
    request.sampling.repetition_penalty = 1.2F;
    request.sampling.logit_bias = {{number, 1.5F}};
    request.sampling.top_logprobs = number;
    return request;
  }
};

TEST_P(Steps, ThatPrefillSendOneCopyUpAndOneDownAndWaitOnce) {
  DrivenEngine::Settings settings = Settings();
  settings.measures_steps = true;  // else memory of the verbs grows now
  DrivenEngine engine(settings);
  ASSERT_TRUE(engine.core().WarmUp().ok());
  engine.Add(SampledRequest(1));
  TakeActivity();

  engine.core().Step();

  const Activity activity = TakeActivity();
  EXPECT_EQ(activity.uploads, 1);
  EXPECT_EQ(activity.downloads, 1);
  EXPECT_EQ(activity.waits, 1);
  EXPECT_EQ(activity.allocations, 0);
}

TEST_P(Steps, ThatDecodeAreOneCopyUpOneGraphTheChoiceAndOneCopyDown) {
  DrivenEngine engine(Settings());
  DecodeThree(engine);
  TakeActivity();

  engine.core().Step();

  EXPECT_EQ(
      TakeActivity(),
      (Activity{.uploads = 1, .downloads = 1, .launches = 1, .graph_launches = 1, .waits = 1})
  );
}

TEST_P(Steps, LeaveExpertCountersOnTheDeviceUntilTheyAreAskedFor) {
  DrivenEngine engine(Settings());
  DecodeThree(engine);
  TakeActivity();

  engine.core().Step();
  engine.core().Step();
  const int64_t downloads = TakeActivity().downloads;
  const size_t routers = engine.core().ReadExpertStatistics().routers.size();

  EXPECT_EQ(downloads, 2);
  // Tokens, gates and margins of each.
  EXPECT_EQ(TakeActivity().downloads, static_cast<int64_t>(3 * routers));
}

// Whether decoding as often as makes a graph, and more, made one.
bool MakesGraphs(DrivenEngine& engine) {
  TakeActivity();
  engine.RunAll();
  const Activity activity = TakeActivity();
  return activity.graphs_recorded + activity.graph_launches > 0;
}

TEST_P(Steps, OfARequestThatAsksForItsRoutingAreNoGraphs) {
  DrivenEngine engine(Settings());
  GenerationRequest request = GreedyRequest({5, 6, 7}, 8);
  request.trace_routing = true;
  engine.Add(std::move(request));
  EXPECT_FALSE(MakesGraphs(engine));

  engine.Add(GreedyRequest({8, 6, 7}, 8));
  EXPECT_TRUE(MakesGraphs(engine));
}

TEST_P(Steps, ThatScoreAreNoGraphsWhereTheyHaveTheShapeOfDecoding) {
  DrivenEngine::Settings settings = Settings();
  settings.limits.max_step_tokens = 1;
  settings.limits.max_running = 1;
  DrivenEngine engine(settings);
  GenerationRequest request = GreedyRequest({5, 6, 7, 8, 9, 10, 11}, 1);
  request.scoring = ScoringParameters{.first_token = 1};

  engine.Add(std::move(request));

  EXPECT_FALSE(MakesGraphs(engine));
}

TEST_P(Steps, SayOnceWhyTheyAreNoGraphsWhenThereIsNoMemoryForThem) {
  DrivenEngine engine(Settings());
  const auto sink = engine.Add(SampledRequest(1));
  engine.core().Step();
  engine.core().Step();  // a decode, as it is; the next one would be captured
  const CapturedLog log;

  const int64_t used = cuda_host::DeviceMemory().total_bytes - cuda_host::DeviceMemory().free_bytes;
  {
    const DeviceOf full(used);
    engine.RunAll();
  }

  EXPECT_THAT(
      log.Lines(),
      ElementsAre(AllOf(
          HasSubstr("event=cuda_graphs_given_up reason=\"out of memory\""),
          HasSubstr("free_bytes=0")
      ))
  );
  EXPECT_EQ(TakeActivity().graph_launches, 0);
  EXPECT_EQ(sink->tokens.size(), 20);
}

struct Outcome {
  std::vector<std::vector<int32_t>> tokens;
  std::vector<std::vector<float>> logprobs;
  std::vector<std::vector<int64_t>> expert_tokens;
  int64_t weight_bytes = 0;
  int64_t graph_launches = 0;
};

// Requests that come and go, so that the batch takes several sizes, several times.
Outcome OutcomeOf(TinyFamily family, bool graphs) {
  auto ops = *MakeOps({.device = "cuda", .cuda_graphs = graphs});
  const Ops& counted = *ops;
  DrivenEngine engine({.family = family}, std::move(ops));
  TakeActivity();
  std::vector<std::shared_ptr<RecordingSink>> sinks;
  for (const int32_t tokens : {9, 3, 14, 6}) {
    GenerationRequest request = GreedyRequest(Prompt(static_cast<size_t>(tokens) + 2), tokens);
    request.sampling.temperature = tokens % 2 == 0 ? 0.0F : 0.9F;
    request.sampling.top_logprobs = 1;
    sinks.push_back(engine.Add(std::move(request)));
    engine.core().Step();
    engine.core().Step();
  }
  engine.RunAll();

  Outcome outcome;
  for (const auto& sink : sinks) {
    outcome.tokens.push_back(sink->tokens);
    outcome.logprobs.push_back(sink->logprobs);
  }
  for (const RouterStatistics& router : engine.core().ReadExpertStatistics().routers) {
    outcome.expert_tokens.push_back(router.tokens);
  }
  outcome.weight_bytes = counted.WeightBytesRead();
  outcome.graph_launches = TakeActivity().graph_launches;
  return outcome;
}

TEST_P(Steps, GiveTheSameBitsAndCountsWithGraphsAndWithout) {
  const Outcome with = OutcomeOf(GetParam(), true);
  const Outcome without = OutcomeOf(GetParam(), false);

  EXPECT_EQ(with.tokens, without.tokens);
  EXPECT_EQ(with.logprobs, without.logprobs);
  EXPECT_EQ(with.expert_tokens, without.expert_tokens);
  EXPECT_EQ(with.weight_bytes, without.weight_bytes);
  EXPECT_GT(with.graph_launches, 3);
  EXPECT_EQ(without.graph_launches, 0);
}

INSTANTIATE_TEST_SUITE_P(
    Families, Steps, testing::Values(TinyFamily::kJetMoe, TinyFamily::kSwitchHead)
);

}  // namespace
}  // namespace switchyard
