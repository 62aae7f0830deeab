#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "kernels/reference/reference_ops.h"
#include "tests/engine/driven_engine.h"

namespace switchyard {
namespace {

// The first 12 tokens are three blocks of 4.
GenerationRequest Asking(std::vector<int32_t> prompt, int32_t max_tokens = 6) {
  GenerationRequest request = GreedyRequest(std::move(prompt), max_tokens);
  request.sampling.top_logprobs = 0;
  return request;
}

TEST(PrefixCache, ComputesASharedBeginningOnce) {
  DrivenEngine engine({});
  const auto first = engine.Add(Asking(Prompt(14)));
  engine.RunAll();

  const auto second = engine.Add(Asking(Prompt(14)));
  engine.RunAll();

  EXPECT_EQ(first->finished->cached_prompt_tokens, 0);
  EXPECT_EQ(second->finished->cached_prompt_tokens, 12);
  EXPECT_EQ(second->tokens, first->tokens);
  EXPECT_EQ(second->logprobs, first->logprobs);
}

TEST(PrefixCache, ComputesTheLastTokenOfAPromptThatIsCachedWhole) {
  DrivenEngine engine({});
  const auto first = engine.Add(Asking(Prompt(12)));
  engine.RunAll();

  const auto second = engine.Add(Asking(Prompt(12)));
  engine.RunAll();

  EXPECT_EQ(second->finished->cached_prompt_tokens, 11);
  EXPECT_EQ(second->logprobs, first->logprobs);
}

TEST(PrefixCache, FindsWhatARunningRequestHasComputedAndBothGoOn) {
  DrivenEngine engine({});
  const auto first = engine.Add(Asking(Prompt(12), 20));
  engine.core().Step();
  engine.core().Step();

  const auto second = engine.Add(Asking(Prompt(12), 20));
  engine.RunAll();

  EXPECT_EQ(second->finished->cached_prompt_tokens, 11);
  EXPECT_EQ(second->logprobs, first->logprobs);
}

TEST(PrefixCache, FindsGeneratedTokensToo) {
  DrivenEngine engine({});
  const auto first = engine.Add(Asking(Prompt(7), 6));
  engine.RunAll();
  std::vector<int32_t> conversation = Prompt(7);
  conversation.insert(conversation.end(), first->tokens.begin(), first->tokens.end());
  conversation.push_back(3);

  const auto second = engine.Add(Asking(conversation));
  engine.RunAll();

  EXPECT_EQ(second->finished->cached_prompt_tokens, 12);
}

TEST(PrefixCache, SharesOnlyWithinASalt) {
  DrivenEngine engine({});
  GenerationRequest mine = Asking(Prompt(14));
  mine.prefix_sharing.salt = "mine";
  GenerationRequest mine_again = mine;
  engine.Add(std::move(mine));
  engine.RunAll();

  GenerationRequest theirs = Asking(Prompt(14));
  theirs.prefix_sharing.salt = "theirs";
  const auto other = engine.Add(std::move(theirs));
  const auto unsalted = engine.Add(Asking(Prompt(14)));
  engine.RunAll();
  const auto again = engine.Add(std::move(mine_again));
  engine.RunAll();

  EXPECT_EQ(other->finished->cached_prompt_tokens, 0);
  EXPECT_EQ(unsalted->finished->cached_prompt_tokens, 0);
  EXPECT_EQ(again->finished->cached_prompt_tokens, 12);
}

TEST(PrefixCache, LeavesOutARequestThatBypassesIt) {
  DrivenEngine engine({});
  GenerationRequest bypassing = Asking(Prompt(14));
  bypassing.prefix_sharing.enabled = false;
  GenerationRequest bypassing_again = bypassing;
  engine.Add(std::move(bypassing));
  engine.RunAll();
  EXPECT_EQ(engine.core().Load().cached_blocks, 0);

  const auto sharing = engine.Add(Asking(Prompt(14)));
  engine.RunAll();
  const auto again = engine.Add(std::move(bypassing_again));
  engine.RunAll();

  EXPECT_EQ(sharing->finished->cached_prompt_tokens, 0);
  EXPECT_EQ(again->finished->cached_prompt_tokens, 0);
}

TEST(PrefixCache, MakesRoomForNewRequests) {
  DrivenEngine engine({.blocks = 6});
  engine.Add(Asking(Prompt(14), 2));
  engine.RunAll();
  ASSERT_EQ(engine.core().Load().cached_blocks, 3);
  std::vector<int32_t> other(20, 9);

  const auto sink = engine.Add(Asking(other, 3));
  engine.RunAll();

  EXPECT_EQ(sink->finished->reason, FinishReason::kLength);
  EXPECT_TRUE(engine.all_blocks_are_free());
}

// From the second step on, every row's logits are no numbers.
class BreakingOps final : public ReferenceOps {
 public:
  void SelectTokens(const SelectTokensArgs& args, const SelectedTokens& out) override {
    if (++steps > good_steps) {
      std::fill_n(static_cast<float*>(args.logits.data()), args.logits.elements(), NAN);
    }
    ReferenceOps::SelectTokens(args, out);
  }
  int steps = 0;
  int good_steps = 1 << 30;
};

TEST(PrefixCache, KeepsNothingOfARequestWhoseLogitsAreNotFinite) {
  auto ops = std::make_unique<BreakingOps>();
  BreakingOps& breaking = *ops;
  DrivenEngine engine({}, std::move(ops));
  breaking.good_steps = 2;
  const auto broken = engine.Add(Asking(Prompt(14)));
  engine.RunAll();
  breaking.good_steps = 1 << 30;

  const auto next = engine.Add(Asking(Prompt(14)));
  engine.RunAll();

  EXPECT_EQ(broken->finished->reason, FinishReason::kError);
  EXPECT_EQ(next->finished->reason, FinishReason::kLength);
  EXPECT_EQ(next->finished->cached_prompt_tokens, 0);
}

}  // namespace
}  // namespace switchyard
