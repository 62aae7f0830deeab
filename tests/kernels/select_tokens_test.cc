#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/kernels/op_test.h"
#include "tests/kernels/test_selection.h"

namespace switchyard {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::Eq;
using testing::Pointwise;

class SelectTokensTest : public OpTest {
 protected:
  int32_t ChosenId(const std::vector<float>& logits, const SelectTokensRow& row) {
    return Select(*ops_, AtPositions(1, logits, row)).ids[0];
  }
};
INSTANTIATE_TEST_SUITE_P(
    Backends, SelectTokensTest, testing::ValuesIn(BackendNames()), BackendTestName
);

TEST_P(SelectTokensTest, TakesTheLargestAtTemperatureZero) {
  EXPECT_EQ(ChosenId(Tenths(), {.temperature = 0}), 1);
}

TEST_P(SelectTokensTest, TakesTheLowestIdAmongTheLargestAtTemperatureZero) {
  EXPECT_EQ(ChosenId({1, 3, 2, 3, 3}, {.temperature = 0}), 1);
}

TEST_P(SelectTokensTest, DrawsByTheSoftmaxAtTemperatureOne) {
  const SelectionRequest request = AtPositions(20000, Tenths(), {.temperature = 1, .seed = 11});

  ExpectFrequencies(Select(*ops_, request).ids, {0.1, 0.4, 0.2, 0.3});
}

TEST_P(SelectTokensTest, SharpensBelowTemperatureOne) {
  const SelectionRequest request = AtPositions(20000, Tenths(), {.temperature = 0.5F, .seed = 12});

  ExpectFrequencies(Select(*ops_, request).ids, {1.0 / 30, 16.0 / 30, 4.0 / 30, 9.0 / 30});
}

TEST_P(SelectTokensTest, DrawsOnlyFromTheTopK) {
  const SelectionRequest request =
      AtPositions(20000, Tenths(), {.temperature = 1, .top_k = 2, .seed = 13});

  ExpectFrequencies(Select(*ops_, request).ids, {0, 4.0 / 7, 0, 3.0 / 7});
}

TEST_P(SelectTokensTest, DrawsOnlyFromTheTopP) {
  const SelectionRequest request =
      AtPositions(20000, Tenths(), {.temperature = 1, .top_p = 0.75F, .seed = 14});

  ExpectFrequencies(Select(*ops_, request).ids, {0, 4.0 / 9, 2.0 / 9, 3.0 / 9});
}

TEST_P(SelectTokensTest, DrawsOnlyAboveMinP) {
  const SelectionRequest request =
      AtPositions(20000, Tenths(), {.temperature = 1, .min_p = 0.6F, .seed = 15});

  ExpectFrequencies(Select(*ops_, request).ids, {0, 4.0 / 7, 0, 3.0 / 7});
}

// See sampling_distribution_test: by falling typicality the tenths are tokens 3, 2, 1, 0.
TEST_P(SelectTokensTest, DrawsOnlyFromTheTypicalP) {
  const SelectionRequest request =
      AtPositions(20000, Tenths(), {.temperature = 1, .typical_p = 0.45F, .seed = 18});

  ExpectFrequencies(Select(*ops_, request).ids, {0, 0, 0.4, 0.6});
}

TEST_P(SelectTokensTest, MeasuresTypicalPOnWhatTopKAndMinPLeft) {
  // 4/7 and 3/7 are left, of which the likelier is the more typical.
  const SelectionRequest by_min_p =
      AtPositions(500, Tenths(), {.temperature = 1, .min_p = 0.6F, .typical_p = 0.25F, .seed = 19});
  const SelectionRequest by_top_k =
      AtPositions(500, Tenths(), {.temperature = 1, .top_k = 2, .typical_p = 0.25F, .seed = 19});

  EXPECT_THAT(Select(*ops_, by_min_p).ids, Each(1));
  EXPECT_THAT(Select(*ops_, by_top_k).ids, Each(1));
}

TEST_P(SelectTokensTest, LeavesTypicalPOutAtTemperatureZero) {
  EXPECT_EQ(ChosenId(Tenths(), {.temperature = 0, .typical_p = 0.25F}), 1);
}

TEST_P(SelectTokensTest, AppliesTheRepetitionPenalty) {
  SelectionRequest request =
      AtPositions(1, {4, 3, -1}, {.repetition_penalty = 2, .history_end = 1});
  request.history_ids = {0};
  request.history_counts = {0};

  EXPECT_THAT(Select(*ops_, request).ids, ElementsAre(1));
}

TEST_P(SelectTokensTest, AppliesThePresencePenaltyOnlyToGeneratedTokens) {
  SelectionRequest request =
      AtPositions(1, {4, 3.5F, 1}, {.presence_penalty = 1, .history_end = 2});
  request.history_ids = {0, 1};
  request.history_counts = {3, 0};

  EXPECT_THAT(Select(*ops_, request).ids, ElementsAre(1));
}

TEST_P(SelectTokensTest, AppliesTheFrequencyPenaltyForEachTime) {
  SelectionRequest request =
      AtPositions(1, {4, 3.5F, 1}, {.frequency_penalty = 0.25F, .history_end = 2});
  request.history_ids = {0, 1};
  request.history_counts = {4, 1};

  // 4 - 4 * 0.25 = 3 against 3.5 - 0.25 = 3.25.
  EXPECT_THAT(Select(*ops_, request).ids, ElementsAre(1));
}

TEST_P(SelectTokensTest, AddsTheBias) {
  SelectionRequest request = AtPositions(1, {4, 3, 1}, {.bias_end = 2});
  request.bias_ids = {2, 0};
  request.bias_values = {2.5F, -1};

  EXPECT_THAT(Select(*ops_, request).ids, ElementsAre(2));
}

TEST_P(SelectTokensTest, UsesEachRowsOwnPartOfHistoryAndBias) {
  SelectionRequest request = AtPositions(3, {4, 3, 1}, {});
  request.history_ids = {0};
  request.history_counts = {1};
  request.bias_ids = {2};
  request.bias_values = {9};
  request.rows[0].presence_penalty = 2;
  request.rows[0].history_end = 1;
  request.rows[1].presence_penalty = 2;
  request.rows[1].history_begin = 1;
  request.rows[1].history_end = 1;
  request.rows[2].bias_end = 1;

  EXPECT_THAT(Select(*ops_, request).ids, ElementsAre(1, 0, 2));
}

TEST_P(SelectTokensTest, DrawsByNothingButSeedAndPosition) {
  const SelectTokensRow row = {.temperature = 1, .seed = 17};
  SelectionRequest request = AtPositions(64, Tenths(), row);
  const std::vector<int32_t> together = Select(*ops_, request).ids;

  std::vector<int32_t> alone;
  for (uint64_t position = 0; position < 64; ++position) {
    SelectionRequest one = AtPositions(1, Tenths(), row);
    one.rows[0].position = position;
    alone.push_back(Select(*ops_, one).ids[0]);
  }
  request.rows[0].position = 63;
  const int32_t moved = Select(*ops_, request).ids[0];

  EXPECT_EQ(alone, together);
  EXPECT_EQ(moved, together[63]);
}

TEST_P(SelectTokensTest, DrawsOtherTokensForAnotherSeed) {
  const SelectionRequest one = AtPositions(64, Tenths(), {.temperature = 1, .seed = 1});
  const SelectionRequest other = AtPositions(64, Tenths(), {.temperature = 1, .seed = 2});

  EXPECT_NE(Select(*ops_, one).ids, Select(*ops_, other).ids);
}

TEST_P(SelectTokensTest, ReportsTheLogprobOfTheChosenTokenFromTheRawLogits) {
  SelectionRequest request = AtPositions(
      1, Tenths(), {.temperature = 0, .repetition_penalty = 8, .history_end = 1, .bias_end = 1}
  );
  request.history_ids = {1};
  request.history_counts = {1};
  request.bias_ids = {2};
  request.bias_values = {50};

  const SelectionAnswer answer = Select(*ops_, request);

  EXPECT_THAT(answer.ids, ElementsAre(2));
  ExpectClose(answer.logprobs, {std::log(0.2F)}, 1e-6F);
}

TEST_P(SelectTokensTest, DoesNotLetTemperatureChangeLogprobs) {
  const SelectionAnswer answer = Select(*ops_, AtPositions(1, Tenths(), {.temperature = 1e-5F}));

  EXPECT_THAT(answer.ids, ElementsAre(1));
  ExpectClose(answer.logprobs, {std::log(0.4F)}, 1e-6F);
}

TEST_P(SelectTokensTest, ReportsTheTopLogprobsByFallingRawLogit) {
  SelectionRequest request = AtPositions(2, Tenths(), {.bias_end = 1, .top_logprobs = 3});
  request.bias_ids = {0};
  request.bias_values = {50};
  request.rows[1].top_logprobs = 1;

  const SelectionAnswer answer = Select(*ops_, request);

  EXPECT_THAT(answer.ids, ElementsAre(0, 0));
  EXPECT_THAT(answer.top_ids, ElementsAre(1, 3, 2, 1, kUnwritten, kUnwritten));
  ExpectClose(
      answer.top_logprobs,
      {std::log(0.4F), std::log(0.3F), std::log(0.2F), std::log(0.4F), kUnwritten, kUnwritten},
      1e-6F
  );
}

TEST_P(SelectTokensTest, ListsTheLowestIdFirstAmongEqualTopLogprobs) {
  const SelectionAnswer answer =
      Select(*ops_, AtPositions(1, {1, 2, 1, 2, 1}, {.top_logprobs = 4}));

  EXPECT_THAT(answer.top_ids, ElementsAre(1, 3, 0, 2));
}

TEST_P(SelectTokensTest, FillsTheTailWhenTheVocabularyHasFewerThanAskedFor) {
  const SelectionAnswer answer = Select(*ops_, AtPositions(1, {0, 0}, {.top_logprobs = 3}));

  EXPECT_THAT(answer.top_ids, ElementsAre(0, 1, -1));
  EXPECT_EQ(answer.top_logprobs[2], -kInfinity);
}

TEST_P(SelectTokensTest, ChoosesWithoutLogprobsWhenNobodyWantsThem) {
  const SelectTokensRow row;
  int32_t id = kUnwritten;

  ops_->SelectTokens({.logits = memory_.Floats({1, 3}, {1, 5, 2}), .rows = &row}, {.ids = &id});

  EXPECT_EQ(id, 1);
}

TEST_P(SelectTokensTest, DoesNothingForNoRows) {
  EXPECT_THAT(Select(*ops_, {.vocabulary = 4}).ids, ElementsAre());
}

class SelectTokensAgainstReferenceTest : public AgainstReferenceTest {};
INSTANTIATE_TEST_SUITE_P(
    Backends,
    SelectTokensAgainstReferenceTest,
    testing::ValuesIn(FastBackendNames()),
    BackendTestName
);

constexpr uint64_t kMixedRows = 513;

// Rows with every combination of the parameters, on random logits.
SelectionRequest MixedRequest(int64_t vocabulary) {
  SelectionRequest request = {
      .vocabulary = vocabulary,
      .history_ids = {0, 2, 3},
      .history_counts = {0, 1, 4},
      .bias_ids = {1, 4},
      .bias_values = {2, -kInfinity},
      .allowed_ids = {0, 1, 3, 4},
  };
  for (uint64_t bits = 0; bits < kMixedRows; ++bits) {
    request.rows.push_back({
        .temperature = (bits & 1) != 0 ? 0.8F : static_cast<float>(bits % 3),
        .top_k = (bits & 2) != 0 ? 5 : 0,
        .top_p = (bits & 4) != 0 ? 0.8F : 1,
        .min_p = (bits & 8) != 0 ? 0.05F : 0,
        .typical_p = (bits & 128) != 0 ? 0.7F : 1,
        .repetition_penalty = (bits & 16) != 0 ? 1.3F : 1,
        .presence_penalty = (bits & 32) != 0 ? 0.4F : 0,
        .frequency_penalty = (bits & 32) != 0 ? 0.1F : 0,
        .seed = bits / 7,
        .position = bits,
        .history_end = 3,
        .bias_end = (bits & 64) != 0 ? 2 : 0,
        .allowed_end = (bits & 256) != 0 ? 4 : 0,
        .top_logprobs = static_cast<int32_t>(bits % 6),
    });
  }
  request.logits = RandomFloats(vocabulary * static_cast<int64_t>(kMixedRows), 21);
  for (float& logit : request.logits) {
    logit *= 4;
  }
  return request;
}

TEST_P(SelectTokensAgainstReferenceTest, AgreesOnEveryCombinationOfParameters) {
  for (const int64_t vocabulary : {5, 129, 2003}) {
    const SelectionRequest request = MixedRequest(vocabulary);
    const SelectionAnswer expected = Select(*reference_, request);

    const SelectionAnswer actual = Select(*ops_, request);

    EXPECT_THAT(actual.ids, Pointwise(Eq(), expected.ids));
    EXPECT_THAT(actual.top_ids, Pointwise(Eq(), expected.top_ids));
    ExpectClose(actual.logprobs, expected.logprobs, 1e-5F);
    ExpectClose(actual.top_logprobs, expected.top_logprobs, 1e-5F);
  }
}

// 2,503 tokens are neither a multiple of a vector nor of a run of partial sums.
TEST_P(SelectTokensTest, SumsLogprobsOverALargeVocabulary) {
  std::vector<float> logits(2503, 80.0F);
  logits.back() = 81.0F;

  const SelectionAnswer answer = Select(*ops_, AtPositions(1, logits, {.temperature = 0}));

  EXPECT_THAT(answer.ids, ElementsAre(2502));
  ExpectClose(answer.logprobs, {1.0F - std::log(2502.0F + std::exp(1.0F))}, 1e-6F);
}

TEST_P(SelectTokensTest, ReportsNotFiniteWhereverInALargeVocabulary) {
  for (const size_t place : {0U, 1023U, 2502U}) {
    for (const float bad : {NAN, INFINITY, -INFINITY}) {
      std::vector<float> logits(2503, -80.0F);
      logits[place] = bad;

      EXPECT_THAT(
          Select(*ops_, AtPositions(1, logits, {.temperature = 0})).ids,
          ElementsAre(kLogitsNotFinite)
      ) << bad
        << " at " << place;
    }
  }
}

}  // namespace
}  // namespace switchyard
