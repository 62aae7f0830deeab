#include "program/bench/load_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <vector>

namespace switchyard {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::SizeIs;

LengthDistribution Lengths(const std::string& text) {
  return *LengthDistribution::Parse(text);
}

std::vector<int32_t> PromptOf(const PlannedRequest& planned) {
  const auto& ids = planned.request.prompt_tokens().ids();
  return {ids.begin(), ids.end()};
}

v1::GetModelInfoResponse ModelOf(int32_t context_tokens, bool has_tokenizer) {
  v1::GetModelInfoResponse model;
  model.set_model("small");
  model.set_vocabulary_size(300);
  model.set_context_tokens(context_tokens);
  model.set_has_tokenizer(has_tokenizer);
  return model;
}

TEST(LoadPlan, GivesTheSameRequestForTheSameSeedAndIndex) {
  const LoadShape shape{.seed = 5, .prompt_tokens = Lengths("uniform:3-40"), .verify_share = 0.5};
  const LoadPlan plan(shape, 300);
  const LoadPlan again(shape, 300);
  LoadShape other_shape = shape;
  other_shape.seed = 6;
  const LoadPlan other(other_shape, 300);

  const PlannedRequest late = plan.At(9);
  const PlannedRequest early = plan.At(2);

  EXPECT_EQ(late.request.SerializeAsString(), again.At(9).request.SerializeAsString());
  EXPECT_EQ(late.verify, again.At(9).verify);
  EXPECT_EQ(early.request.SerializeAsString(), again.At(2).request.SerializeAsString());
  EXPECT_NE(early.request.SerializeAsString(), late.request.SerializeAsString());
  EXPECT_NE(late.request.SerializeAsString(), other.At(9).request.SerializeAsString());
}

TEST(LoadPlan, DrawsPromptsFromTheWholeVocabularyAndNothingElse) {
  const LoadPlan plan({.prompt_tokens = Lengths("fixed:500")}, 7);

  const std::vector<int32_t> prompt = PromptOf(plan.At(0));

  EXPECT_THAT(prompt, SizeIs(500));
  EXPECT_EQ(
      std::set<int32_t>(prompt.begin(), prompt.end()), (std::set<int32_t>{0, 1, 2, 3, 4, 5, 6})
  );
}

TEST(LoadPlan, AsksForExactlyTheDrawnLength) {
  const LoadPlan plan({.output_tokens = Lengths("fixed:21"), .temperature = 0.5F}, 300);

  const v1::GenerateRequest request = plan.At(3).request;

  EXPECT_EQ(request.stopping().max_tokens(), 21);
  EXPECT_TRUE(request.stopping().ignore_eos());
  EXPECT_EQ(request.sampling().temperature(), 0.5F);
  EXPECT_TRUE(request.sampling().has_seed());
}

TEST(LoadPlan, PutsTheSharedPrefixBeforeItsShareOfPrompts) {
  const LoadPlan plan(
      {.prompt_tokens = Lengths("fixed:4"),
       .shared_prefix_tokens = 10,
       .shared_prefix_share = 0.25},
      30'000
  );
  std::set<std::vector<int32_t>> prefixes;
  std::set<std::vector<int32_t>> rests;
  int with_prefix = 0;
  for (uint64_t i = 0; i < 1000; ++i) {
    const std::vector<int32_t> prompt = PromptOf(plan.At(i));
    if (prompt.size() == 14) {
      ++with_prefix;
      prefixes.insert({prompt.begin(), prompt.begin() + 10});
      rests.insert({prompt.begin() + 10, prompt.end()});
    } else {
      EXPECT_THAT(prompt, SizeIs(4));
    }
  }

  // Five deviations: 5 * sqrt(1000 * 0.25 * 0.75) = 68.
  EXPECT_NEAR(with_prefix, 250, 68);
  EXPECT_THAT(prefixes, SizeIs(1));
  EXPECT_THAT(rests, SizeIs(with_prefix));
}

TEST(LoadPlan, DisturbsTheAskedShares) {
  const LoadPlan plan(
      {.output_tokens = Lengths("fixed:20"),
       .cancel_share = 0.3,
       .deadline_share = 0.1,
       .stall_share = 0.05},
      300
  );
  std::vector<int> counts(4);
  int early = 0;
  std::set<int32_t> moments;
  for (uint64_t i = 0; i < 10'000; ++i) {
    const PlannedRequest planned = plan.At(i);
    ++counts[static_cast<size_t>(planned.disturbance)];
    if (planned.disturbance == Disturbance::kCancel) {
      early += planned.disturbed_after_tokens == 0 ? 1 : 0;
      moments.insert(planned.disturbed_after_tokens);
      EXPECT_GE(planned.early, 0);
      EXPECT_LT(planned.early, 1);
    }
  }

  // Within five deviations, sqrt(10,000 p (1 - p)) each.
  EXPECT_NEAR(counts[static_cast<size_t>(Disturbance::kCancel)], 3000, 230);
  EXPECT_NEAR(counts[static_cast<size_t>(Disturbance::kDeadline)], 1000, 150);
  EXPECT_NEAR(counts[static_cast<size_t>(Disturbance::kStall)], 500, 109);
  // A quarter of the cancels, and 1 in 20 of the others: 3000 * (0.25 + 0.75 / 20) = 862.
  EXPECT_NEAR(early, 862, 150);
  EXPECT_THAT(moments, SizeIs(20));
  EXPECT_EQ(*moments.rbegin(), 19);
}

TEST(LoadPlan, KeepsRequestsWhenOnlySharesOfDisturbancesChange) {
  const LoadPlan calm({}, 300);
  const LoadPlan wild({.cancel_share = 0.5, .verify_share = 1}, 300);

  EXPECT_EQ(calm.At(4).request.SerializeAsString(), wild.At(4).request.SerializeAsString());
}

TEST(LoadPlan, TakesTextPromptsInTurn) {
  const LoadPlan plan(
      {.output_tokens = Lengths("fixed:9"), .text_prompts = {{"one", 5}, {"two", std::nullopt}}},
      300
  );

  EXPECT_EQ(plan.At(0).request.prompt_text(), "one");
  EXPECT_EQ(plan.At(0).request.stopping().max_tokens(), 5);
  EXPECT_EQ(plan.At(1).request.prompt_text(), "two");
  EXPECT_EQ(plan.At(1).request.stopping().max_tokens(), 9);
  EXPECT_EQ(plan.At(2).request.prompt_text(), "one");
  EXPECT_FALSE(plan.At(0).request.has_prompt_tokens());
}

TEST(LoadPlan, LetsRequestsArriveAsAPoissonProcess) {
  const LoadPlan plan({.seed = 2}, 300);
  double seconds = 0;
  int short_gaps = 0;
  for (uint64_t i = 0; i < 40'000; ++i) {
    const double gap = plan.ArrivalGapSeconds(i, 50);
    seconds += gap;
    short_gaps += gap < 0.02 ? 1 : 0;
  }

  // 40,000 at 50 a second take 800 s; five deviations are 5 * sqrt(40,000) / 50 = 20.
  EXPECT_NEAR(seconds, 800, 20);
  // Of exponential gaps, 1 - 1/e are shorter than the mean: 25,285, five deviations 482.
  EXPECT_NEAR(short_gaps, 25'285, 482);
  EXPECT_EQ(plan.ArrivalGapSeconds(3, 50), LoadPlan({.seed = 2}, 300).ArrivalGapSeconds(3, 50));
}

TEST(CheckShape, RefusesWhatTheContextCannotHold) {
  const LoadShape shape{
      .prompt_tokens = Lengths("uniform:1-80"),
      .output_tokens = Lengths("fixed:30"),
      .shared_prefix_tokens = 5};

  const Status refused = CheckShape(shape, ModelOf(114, false));

  EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(
      MessageOf(refused),
      AllOf(
          HasSubstr("--prompt-tokens uniform:1-80"),
          HasSubstr("--output-tokens fixed:30"),
          HasSubstr("reach 115 tokens"),
          HasSubstr("lower them by 1")
      )
  );
  EXPECT_TRUE(CheckShape(shape, ModelOf(115, false)).ok());
}

TEST(CheckShape, RefusesMoreThanAllRequestsDisturbed) {
  const LoadShape shape{.cancel_share = 0.5, .deadline_share = 0.25, .stall_share = 0.5};

  EXPECT_THAT(
      MessageOf(CheckShape(shape, ModelOf(1000, false))), HasSubstr("--stall-share add up to 1.25")
  );
}

TEST(CheckShape, RefusesTextPromptsThatCannotBeSent) {
  LoadShape shape{.text_prompts = {{"one", 5}}};

  EXPECT_THAT(
      MessageOf(CheckShape(shape, ModelOf(1000, false))),
      HasSubstr("needs a model folder with a tokenizer")
  );
  EXPECT_TRUE(CheckShape(shape, ModelOf(1000, true)).ok());
  shape.shared_prefix_tokens = 3;
  EXPECT_THAT(
      MessageOf(CheckShape(shape, ModelOf(1000, true))), HasSubstr("--shared-prefix-tokens 3")
  );
}

}  // namespace
}  // namespace switchyard
