#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "tests/engine/driven_engine.h"

namespace switchyard {
namespace {

std::vector<int32_t> PromptOf(int32_t first, size_t tokens) {
  std::vector<int32_t> prompt = Prompt(tokens);
  prompt[0] = first;
  return prompt;
}

GenerationRequest Sampled(int32_t first, size_t prompt_tokens, int32_t max_tokens) {
  GenerationRequest request = GreedyRequest(PromptOf(first, prompt_tokens), max_tokens);
  request.sampling.temperature = 0.9F;
  request.sampling.seed = static_cast<uint64_t>(first);
  request.sampling.top_logprobs = 0;
  return request;
}

// Three requests of 7 blocks each in a cache of 10, admitted without looking ahead.
constexpr int64_t kFewBlocks = 10;
DrivenEngine::Settings Crowded(int64_t blocks) {
  return {
      .limits = {.max_step_tokens = 16, .max_running = 4, .block_tokens = 4, .growth_tokens = 0},
      .blocks = blocks};
}

class Crowd {
 public:
  explicit Crowd(int64_t blocks) : engine_(Crowded(blocks)) {
    for (int32_t first = 0; first < 3; ++first) {
      sinks_.push_back(engine_.Add(Sampled(first, 9, 18)));
    }
    engine_.RunAll();
  }
  const RecordingSink& sink(size_t index) const { return *sinks_[index]; }
  DrivenEngine& engine() { return engine_; }

 private:
  DrivenEngine engine_;
  std::vector<std::shared_ptr<RecordingSink>> sinks_;
};

TEST(Preemption, ChangesNoTokenAndNoLogprob) {
  Crowd roomy(64);
  Crowd crowded(kFewBlocks);

  EXPECT_EQ(roomy.engine().core().Load().preempted_total, 0);
  EXPECT_GT(crowded.engine().core().Load().preempted_total, 0);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(crowded.sink(i).tokens, roomy.sink(i).tokens) << "request " << i;
    EXPECT_EQ(crowded.sink(i).logprobs, roomy.sink(i).logprobs) << "request " << i;
    EXPECT_EQ(crowded.sink(i).finished->completion_tokens, 18);
    EXPECT_EQ(crowded.sink(i).finished_calls, 1);
  }
  EXPECT_TRUE(crowded.engine().all_blocks_are_free());
}

TEST(Preemption, CountsTokensComputedAgainApart) {
  Crowd roomy(64);
  Crowd crowded(kFewBlocks);
  const auto counted = [](Crowd& crowd, Phase phase) {
    const RouterStatistics router = crowd.engine().core().ReadExpertStatistics().routers[0];
    const auto experts = static_cast<int64_t>(router.tokens.size()) / kPhases;
    const auto begin = router.tokens.begin() + static_cast<int64_t>(phase) * experts;
    return std::accumulate(begin, begin + experts, int64_t{0});
  };

  EXPECT_EQ(counted(roomy, Phase::kRecompute), 0);
  EXPECT_GT(counted(crowded, Phase::kRecompute), 0);
  EXPECT_EQ(counted(crowded, Phase::kPrefill), counted(roomy, Phase::kPrefill));
  EXPECT_EQ(counted(crowded, Phase::kDecode), counted(roomy, Phase::kDecode));
}

TEST(Preemption, LetsTheOldestFinishFirst) {
  DrivenEngine engine(Crowded(kFewBlocks));
  std::vector<int32_t> finished;
  for (int32_t first = 0; first < 3; ++first) {
    engine.Add(Sampled(first, 9, 18))->on_finished = [&finished, first] {
      finished.push_back(first);
    };
  }
  engine.RunAll();

  EXPECT_EQ(finished.front(), 0);
}

TEST(Preemption, TakesTheLowestPriorityFirst) {
  DrivenEngine engine(Crowded(kFewBlocks));
  const auto add = [&engine](int32_t first, int32_t priority) {
    GenerationRequest request = Sampled(first, 9, 18);
    request.priority = priority;
    return engine.Add(std::move(request));
  };
  const auto oldest = add(0, 0);
  const auto low = add(1, 0);
  const auto high = add(2, 3);

  while (engine.core().Load().preempted_total == 0) {
    ASSERT_TRUE(engine.core().Step());
  }
  const size_t oldest_tokens = oldest->tokens.size();
  const size_t low_tokens = low->tokens.size();
  const size_t high_tokens = high->tokens.size();
  engine.core().Step();

  EXPECT_EQ(oldest->tokens.size(), oldest_tokens + 1);
  EXPECT_EQ(low->tokens.size(), low_tokens);
  EXPECT_EQ(high->tokens.size(), high_tokens + 1);
}

TEST(Preemption, IsCancelledLikeAnyOther) {
  DrivenEngine engine(Crowded(kFewBlocks));
  engine.Add(Sampled(0, 9, 18));
  engine.Add(Sampled(1, 9, 18));
  const auto third = engine.Add(Sampled(2, 9, 18));
  while (engine.core().Load().preempted_total == 0) {
    ASSERT_TRUE(engine.core().Step());
  }

  engine.core().Cancel(engine.last_id());

  EXPECT_EQ(third->finished->reason, FinishReason::kCancelled);
  engine.RunAll();
  EXPECT_TRUE(engine.all_blocks_are_free());
}

}  // namespace
}  // namespace switchyard
