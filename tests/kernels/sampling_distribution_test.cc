#include "kernels/reference/sampling_distribution.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace switchyard {
namespace {

using testing::ElementsAre;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kLargest = std::numeric_limits<float>::max();

struct Distribution {
  std::vector<int32_t> ids;
  std::vector<double> probabilities;
};

Distribution DistributionOf(const SelectTokensRow& row, const std::vector<float>& logits) {
  std::vector<Candidate> candidates;
  SamplingDistribution(row, logits.data(), static_cast<int64_t>(logits.size()), candidates);
  Distribution distribution;
  for (const Candidate& candidate : candidates) {
    distribution.ids.push_back(candidate.id);
    distribution.probabilities.push_back(candidate.probability);
  }
  return distribution;
}

void ExpectProbabilities(const Distribution& actual, const std::vector<double>& expected) {
  ASSERT_EQ(actual.probabilities.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(actual.probabilities[i], expected[i], 1e-7) << "token " << actual.ids[i];
  }
}

// At temperature 1 the probabilities of the tokens are 0.1, 0.4, 0.2 and 0.3.
std::vector<float> Tenths() {
  return {std::log(1.0F), std::log(4.0F), std::log(2.0F), std::log(3.0F)};
}

TEST(SamplingDistribution, IsTheSoftmaxAtTemperatureOne) {
  const Distribution distribution = DistributionOf({.temperature = 1}, Tenths());

  EXPECT_THAT(distribution.ids, ElementsAre(0, 1, 2, 3));
  ExpectProbabilities(distribution, {0.1, 0.4, 0.2, 0.3});
}

TEST(SamplingDistribution, SquaresTheOddsAtTemperatureOneHalf) {
  const Distribution distribution = DistributionOf({.temperature = 0.5F}, Tenths());

  ExpectProbabilities(distribution, {1.0 / 30, 16.0 / 30, 4.0 / 30, 9.0 / 30});
}

TEST(SamplingDistribution, TakesTheRootOfTheOddsAtTemperatureTwo) {
  const std::vector<float> logits = {std::log(1.0F), std::log(9.0F), std::log(16.0F)};

  ExpectProbabilities(DistributionOf({.temperature = 2}, logits), {1.0 / 8, 3.0 / 8, 4.0 / 8});
}

TEST(SamplingDistribution, PutsAllOnTheLargestAtATinyTemperature) {
  for (const float temperature : {1e-4F, 1e-30F, std::numeric_limits<float>::denorm_min()}) {
    ExpectProbabilities(DistributionOf({.temperature = temperature}, Tenths()), {0, 1, 0, 0});
  }
}

TEST(SamplingDistribution, DoesNotOverflowOnTheLargestLogits) {
  const std::vector<float> logits = {kLargest, -kLargest, kLargest};

  ExpectProbabilities(DistributionOf({.temperature = 1e-6F}, logits), {0.5, 0, 0.5});
}

TEST(SamplingDistribution, KeepsTheTopKLargest) {
  const Distribution distribution = DistributionOf({.temperature = 1, .top_k = 2}, Tenths());

  EXPECT_THAT(distribution.ids, ElementsAre(1, 3));
  ExpectProbabilities(distribution, {4.0 / 7, 3.0 / 7});
}

TEST(SamplingDistribution, PrefersTheLowestIdAmongEqualsInTopK) {
  EXPECT_THAT(DistributionOf({.temperature = 1, .top_k = 2}, {1, 2, 1, 1}).ids, ElementsAre(0, 1));
}

TEST(SamplingDistribution, KeepsAllWhenTopKIsZeroOrMoreThanAll) {
  EXPECT_EQ(DistributionOf({.temperature = 1, .top_k = 0}, Tenths()).ids.size(), 4);
  EXPECT_EQ(DistributionOf({.temperature = 1, .top_k = 9}, Tenths()).ids.size(), 4);
}

TEST(SamplingDistribution, KeepsTheSmallestSetThatHoldsTopP) {
  const Distribution half = DistributionOf({.temperature = 1, .top_p = 0.5F}, Tenths());
  const Distribution more = DistributionOf({.temperature = 1, .top_p = 0.75F}, Tenths());

  EXPECT_THAT(half.ids, ElementsAre(1, 3));
  ExpectProbabilities(half, {4.0 / 7, 3.0 / 7});
  EXPECT_THAT(more.ids, ElementsAre(1, 2, 3));
  ExpectProbabilities(more, {4.0 / 9, 2.0 / 9, 3.0 / 9});
}

TEST(SamplingDistribution, StopsWhenTopPIsReachedExactly) {
  // Powers of two, so that the sums are exact: 1/2 reaches 0.5 alone.
  const std::vector<float> halves = {0, 0};

  EXPECT_THAT(DistributionOf({.temperature = 1, .top_p = 0.5F}, halves).ids, ElementsAre(0));
}

TEST(SamplingDistribution, AlwaysKeepsOneTokenInTopP) {
  EXPECT_THAT(DistributionOf({.temperature = 1, .top_p = 1e-9F}, Tenths()).ids, ElementsAre(1));
}

TEST(SamplingDistribution, KeepsWhatIsAtLeastMinPOfTheLargest) {
  const Distribution distribution = DistributionOf({.temperature = 1, .min_p = 0.6F}, Tenths());

  EXPECT_THAT(distribution.ids, ElementsAre(1, 3));
  ExpectProbabilities(distribution, {4.0 / 7, 3.0 / 7});
}

TEST(SamplingDistribution, KeepsOnlyTheLargestAtMinPOne) {
  EXPECT_THAT(DistributionOf({.temperature = 1, .min_p = 1}, Tenths()).ids, ElementsAre(1));
}

// With the tenths the entropy is 1.2799, and -log(probability) is 2.3026, 0.9163, 1.6094
// and 1.2040: away from the entropy by 1.0227, 0.3636, 0.3296 and 0.0759. The likeliest token is
// only third.
TEST(SamplingDistribution, KeepsTheTokensWhoseSurpriseIsNearestToTheEntropyInTypicalP) {
  const Distribution one = DistributionOf({.temperature = 1, .typical_p = 0.25F}, Tenths());
  const Distribution two = DistributionOf({.temperature = 1, .typical_p = 0.45F}, Tenths());
  const Distribution three = DistributionOf({.temperature = 1, .typical_p = 0.6F}, Tenths());

  EXPECT_THAT(one.ids, ElementsAre(3));
  EXPECT_THAT(two.ids, ElementsAre(2, 3));
  ExpectProbabilities(two, {2.0 / 5, 3.0 / 5});
  EXPECT_THAT(three.ids, ElementsAre(1, 2, 3));
  ExpectProbabilities(three, {4.0 / 9, 2.0 / 9, 3.0 / 9});
}

TEST(SamplingDistribution, AlwaysKeepsOneTokenInTypicalPAndAllAtOne) {
  EXPECT_THAT(DistributionOf({.temperature = 1, .typical_p = 1e-9F}, Tenths()).ids, ElementsAre(3));
  EXPECT_EQ(DistributionOf({.temperature = 1, .typical_p = 1}, Tenths()).ids.size(), 4);
}

TEST(SamplingDistribution, PrefersTheLowestIdAmongEquallyTypicalTokens) {
  EXPECT_THAT(
      DistributionOf({.temperature = 1, .typical_p = 0.5F}, {2, 2, 2, 2}).ids, ElementsAre(0, 1)
  );
}

TEST(SamplingDistribution, HoldsTokensOfNoProbabilityForTheLeastTypical) {
  const Distribution distribution =
      DistributionOf({.temperature = 1, .typical_p = 0.9F}, {-kLargest, 0, 0, -kInfinity});

  EXPECT_THAT(distribution.ids, ElementsAre(1, 2));
  ExpectProbabilities(distribution, {0.5, 0.5});
}

TEST(SamplingDistribution, MeasuresTypicalPOnWhatMinPLeft) {
  // min_p leaves 4/7 and 3/7; their entropy is 0.6829, -log(4/7) 0.5596 and -log(3/7) 0.8473, so
  // the likelier is the more typical now.
  const Distribution distribution =
      DistributionOf({.temperature = 1, .min_p = 0.6F, .typical_p = 0.25F}, Tenths());

  EXPECT_THAT(distribution.ids, ElementsAre(1));
}

TEST(SamplingDistribution, MeasuresTopPOnWhatTopKLeft) {
  // After top_k = 2 token 1 has 4/7 > 0.5 of what is left, but only 0.4 of the whole.
  const Distribution distribution =
      DistributionOf({.temperature = 1, .top_k = 2, .top_p = 0.5F}, Tenths());

  EXPECT_THAT(distribution.ids, ElementsAre(1));
}

TEST(SamplingDistribution, AppliesTemperatureBeforeTopP) {
  // At temperature 1/2 token 1 alone has 16/30.
  const Distribution distribution = DistributionOf({.temperature = 0.5F, .top_p = 0.5F}, Tenths());

  EXPECT_THAT(distribution.ids, ElementsAre(1));
}

TEST(SamplingDistribution, LeavesForbiddenTokensOut) {
  const Distribution distribution =
      DistributionOf({.temperature = 1, .top_k = 3}, {0, -kInfinity, 0, -kInfinity});

  EXPECT_THAT(distribution.ids, ElementsAre(0, 2));
  ExpectProbabilities(distribution, {0.5, 0.5});
}

TEST(SamplingDistribution, IsEmptyWhenEveryTokenIsForbidden) {
  EXPECT_THAT(DistributionOf({.temperature = 1}, {-kInfinity, -kInfinity}).ids, ElementsAre());
}

TEST(Draw, InvertsTheCumulativeDistribution) {
  const std::vector<Candidate> candidates = {
      {.id = 2, .probability = 0.25},
      {.id = 5, .probability = 0.5},
      {.id = 7, .probability = 0.25}};

  EXPECT_EQ(Draw(candidates, 0), 2);
  EXPECT_EQ(Draw(candidates, 0.2499), 2);
  EXPECT_EQ(Draw(candidates, 0.25), 5);
  EXPECT_EQ(Draw(candidates, 0.7499), 5);
  EXPECT_EQ(Draw(candidates, 0.75), 7);
}

TEST(Draw, NeverGivesATokenOfProbabilityZero) {
  const std::vector<Candidate> candidates = {
      {.id = 0, .probability = 0}, {.id = 1, .probability = 0.999}, {.id = 2, .probability = 0}};

  EXPECT_EQ(Draw(candidates, 0), 1);
  EXPECT_EQ(Draw(candidates, 0.9999), 1) << "the probabilities sum to less than the draw";
}

class Penalties : public testing::Test {
 protected:
  std::vector<float> Penalised(SelectTokensRow row, std::vector<float> logits) const {
    SelectTokensArgs args;
    args.history_ids = history_ids_.data();
    args.history_output_counts = history_counts_.data();
    args.bias_ids = bias_ids_.data();
    args.bias_values = bias_values_.data();
    args.allowed_ids = allowed_ids_.data();
    row.history_end = static_cast<int32_t>(history_ids_.size());
    row.bias_end = static_cast<int32_t>(bias_ids_.size());
    row.allowed_end = static_cast<int32_t>(allowed_ids_.size());
    ApplyPenaltiesAndBias(args, row, static_cast<int64_t>(logits.size()), logits.data());
    return logits;
  }

  std::vector<int32_t> history_ids_;
  std::vector<int32_t> history_counts_;
  std::vector<int32_t> bias_ids_;
  std::vector<float> bias_values_;
  std::vector<int32_t> allowed_ids_;
};

TEST_F(Penalties, RepetitionDividesPositiveAndMultipliesNegativeLogitsOfSeenTokens) {
  history_ids_ = {0, 1, 3};
  history_counts_ = {0, 2, 1};  // token 0 stands in the prompt only and counts all the same

  EXPECT_THAT(Penalised({.repetition_penalty = 2}, {4, -4, 4, 0}), ElementsAre(2, -8, 4, 0));
}

TEST_F(Penalties, PresenceIsSubtractedOnceFromGeneratedTokens) {
  history_ids_ = {0, 1, 2};
  history_counts_ = {0, 1, 5};

  EXPECT_THAT(Penalised({.presence_penalty = 0.5F}, {1, 1, 1, 1}), ElementsAre(1, 0.5, 0.5, 1));
}

TEST_F(Penalties, FrequencyIsSubtractedForEachTimeATokenWasGenerated) {
  history_ids_ = {0, 1, 2};
  history_counts_ = {0, 1, 5};

  EXPECT_THAT(Penalised({.frequency_penalty = 0.5F}, {1, 1, 1, 1}), ElementsAre(1, 0.5, -1.5, 1));
}

TEST_F(Penalties, NegativePenaltiesEncourage) {
  history_ids_ = {1};
  history_counts_ = {2};

  EXPECT_THAT(
      Penalised({.presence_penalty = -1, .frequency_penalty = -0.5F}, {0, 0}), ElementsAre(0, 2)
  );
}

TEST_F(Penalties, RepetitionComesBeforePresenceAndFrequencyAndBiasIsLast) {
  history_ids_ = {0};
  history_counts_ = {2};
  bias_ids_ = {0};
  bias_values_ = {10};

  // 8 / 2 - 1 - 2 * 0.25 + 10.
  EXPECT_THAT(
      Penalised(
          {.repetition_penalty = 2, .presence_penalty = 1, .frequency_penalty = 0.25F}, {8, 0}
      ),
      ElementsAre(12.5, 0)
  );
}

TEST_F(Penalties, BiasIsAddedToTheGivenTokens) {
  bias_ids_ = {2, 0};
  bias_values_ = {1.5F, -100};

  EXPECT_THAT(Penalised({}, {1, 1, 1}), ElementsAre(-99, 1, 2.5));
}

TEST_F(Penalties, BiasOfMinusInfinityForbidsForGood) {
  bias_ids_ = {0, 0};
  bias_values_ = {-kInfinity, kInfinity};

  EXPECT_THAT(Penalised({}, {1, 1}), ElementsAre(-kInfinity, 1));
}

TEST_F(Penalties, AllowedIdsForbidEveryOtherToken) {
  allowed_ids_ = {1, 2, 4};

  EXPECT_THAT(
      Penalised({}, {1, 2, 3, 4, 5, 6}), ElementsAre(-kInfinity, 2, 3, -kInfinity, 5, -kInfinity)
  );
}

TEST_F(Penalties, AllowedIdsDoNotBringBackWhatTheBiasForbids) {
  bias_ids_ = {0};
  bias_values_ = {-kInfinity};
  allowed_ids_ = {0, 2};

  EXPECT_THAT(Penalised({}, {1, 2, 3}), ElementsAre(-kInfinity, -kInfinity, 3));
}

TEST_F(Penalties, SaturateInsteadOfOverflowing) {
  history_ids_ = {0, 1};
  history_counts_ = {1, 1};

  EXPECT_THAT(
      Penalised({.repetition_penalty = 1e-38F}, {1e20F, -1}), ElementsAre(kLargest, -1e-38F)
  );
  EXPECT_THAT(
      Penalised({.presence_penalty = kLargest, .frequency_penalty = kLargest}, {-1, 1e30F}),
      ElementsAre(-kLargest, -kLargest)
  );
}

}  // namespace
}  // namespace switchyard
