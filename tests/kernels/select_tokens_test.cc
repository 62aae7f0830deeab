#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/kernels/op_test.h"

namespace switchyard {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::Eq;
using testing::Pointwise;

constexpr int32_t kUnwritten = -99;

struct Request {
  int64_t vocabulary = 0;
  std::vector<float> logits = {};  // of all rows
  std::vector<SelectTokensRow> rows = {};
  std::vector<int32_t> history_ids = {};
  std::vector<int32_t> history_counts = {};
  std::vector<int32_t> bias_ids = {};
  std::vector<float> bias_values = {};
};

struct Answer {
  std::vector<int32_t> ids;
  std::vector<float> logprobs;
  std::vector<int32_t> top_ids;
  std::vector<float> top_logprobs;
};

Answer Select(Ops& ops, const Request& request) {
  OpsMemory memory(ops);
  const size_t rows = request.rows.size();
  int32_t max_top_logprobs = 0;
  for (const SelectTokensRow& row : request.rows) {
    max_top_logprobs = std::max(max_top_logprobs, row.top_logprobs);
  }
  const size_t top_entries = rows * static_cast<size_t>(max_top_logprobs);
  Answer answer = {
      .ids = std::vector<int32_t>(rows, kUnwritten),
      .logprobs = std::vector<float>(rows, kUnwritten),
      .top_ids = std::vector<int32_t>(top_entries, kUnwritten),
      .top_logprobs = std::vector<float>(top_entries, kUnwritten),
  };
  const SelectTokensArgs args = {
      .logits = memory.Floats({static_cast<int64_t>(rows), request.vocabulary}, request.logits),
      .rows = request.rows.data(),
      .history_ids = request.history_ids.data(),
      .history_output_counts = request.history_counts.data(),
      .bias_ids = request.bias_ids.data(),
      .bias_values = request.bias_values.data(),
  };
  ops.SelectTokens(
      args,
      {.ids = answer.ids.data(),
       .logprobs = answer.logprobs.data(),
       .top_ids = answer.top_ids.data(),
       .top_logprobs = answer.top_logprobs.data(),
       .max_top_logprobs = max_top_logprobs}
  );
  return answer;
}

// The same logits at positions 0, 1, 2, ... of one sequence.
Request AtPositions(int32_t positions, const std::vector<float>& logits, SelectTokensRow row) {
  Request request = {.vocabulary = static_cast<int64_t>(logits.size())};
  for (int32_t position = 0; position < positions; ++position) {
    row.position = static_cast<uint64_t>(position);
    request.rows.push_back(row);
    request.logits.insert(request.logits.end(), logits.begin(), logits.end());
  }
  return request;
}

std::vector<float> Tenths() {
  return {std::log(1.0F), std::log(4.0F), std::log(2.0F), std::log(3.0F)};
}

// Compares how often each token was chosen with its probability: Pearson's statistic over its
// degrees of freedom. With a fixed seed this is one number for ever; 25 at three degrees would
// happen to one seed in sixty thousand.
void ExpectFrequencies(const std::vector<int32_t>& ids, const std::vector<double>& probabilities) {
  std::vector<int> counts(probabilities.size(), 0);
  for (const int32_t id : ids) {
    ASSERT_GE(id, 0);
    ASSERT_LT(static_cast<size_t>(id), counts.size());
    ++counts[static_cast<size_t>(id)];
  }
  double statistic = 0;
  for (size_t id = 0; id < counts.size(); ++id) {
    const double expected = probabilities[id] * static_cast<double>(ids.size());
    if (expected == 0) {
      EXPECT_EQ(counts[id], 0) << "token " << id << " cannot be drawn";
      continue;
    }
    statistic += (counts[id] - expected) * (counts[id] - expected) / expected;
  }
  EXPECT_LT(statistic, 25);
}

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
  const Request request = AtPositions(20000, Tenths(), {.temperature = 1, .seed = 11});

  ExpectFrequencies(Select(*ops_, request).ids, {0.1, 0.4, 0.2, 0.3});
}

TEST_P(SelectTokensTest, SharpensBelowTemperatureOne) {
  const Request request = AtPositions(20000, Tenths(), {.temperature = 0.5F, .seed = 12});

  ExpectFrequencies(Select(*ops_, request).ids, {1.0 / 30, 16.0 / 30, 4.0 / 30, 9.0 / 30});
}

TEST_P(SelectTokensTest, DrawsOnlyFromTheTopK) {
  const Request request = AtPositions(20000, Tenths(), {.temperature = 1, .top_k = 2, .seed = 13});

  ExpectFrequencies(Select(*ops_, request).ids, {0, 4.0 / 7, 0, 3.0 / 7});
}

TEST_P(SelectTokensTest, DrawsOnlyFromTheTopP) {
  const Request request =
      AtPositions(20000, Tenths(), {.temperature = 1, .top_p = 0.75F, .seed = 14});

  ExpectFrequencies(Select(*ops_, request).ids, {0, 4.0 / 9, 2.0 / 9, 3.0 / 9});
}

TEST_P(SelectTokensTest, DrawsOnlyAboveMinP) {
  const Request request =
      AtPositions(20000, Tenths(), {.temperature = 1, .min_p = 0.6F, .seed = 15});

  ExpectFrequencies(Select(*ops_, request).ids, {0, 4.0 / 7, 0, 3.0 / 7});
}

TEST_P(SelectTokensTest, AppliesTheRepetitionPenalty) {
  Request request = AtPositions(1, {4, 3, -1}, {.repetition_penalty = 2, .history_end = 1});
  request.history_ids = {0};
  request.history_counts = {0};

  EXPECT_THAT(Select(*ops_, request).ids, ElementsAre(1));
}

TEST_P(SelectTokensTest, AppliesThePresencePenaltyOnlyToGeneratedTokens) {
  Request request = AtPositions(1, {4, 3.5F, 1}, {.presence_penalty = 1, .history_end = 2});
  request.history_ids = {0, 1};
  request.history_counts = {3, 0};

  EXPECT_THAT(Select(*ops_, request).ids, ElementsAre(1));
}

TEST_P(SelectTokensTest, AppliesTheFrequencyPenaltyForEachTime) {
  Request request = AtPositions(1, {4, 3.5F, 1}, {.frequency_penalty = 0.25F, .history_end = 2});
  request.history_ids = {0, 1};
  request.history_counts = {4, 1};

  // 4 - 4 * 0.25 = 3 against 3.5 - 0.25 = 3.25.
  EXPECT_THAT(Select(*ops_, request).ids, ElementsAre(1));
}

TEST_P(SelectTokensTest, AddsTheBias) {
  Request request = AtPositions(1, {4, 3, 1}, {.bias_end = 2});
  request.bias_ids = {2, 0};
  request.bias_values = {2.5F, -1};

  EXPECT_THAT(Select(*ops_, request).ids, ElementsAre(2));
}

TEST_P(SelectTokensTest, NeverChoosesAForbiddenToken) {
  Request request = AtPositions(2000, Tenths(), {.temperature = 1, .seed = 16, .bias_end = 2});
  request.bias_ids = {1, 0};
  request.bias_values = {-kInfinity, -kInfinity};

  ExpectFrequencies(Select(*ops_, request).ids, {0, 0, 0.4, 0.6});
}

TEST_P(SelectTokensTest, UsesEachRowsOwnPartOfHistoryAndBias) {
  Request request = AtPositions(3, {4, 3, 1}, {});
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
  Request request = AtPositions(64, Tenths(), row);
  const std::vector<int32_t> together = Select(*ops_, request).ids;

  std::vector<int32_t> alone;
  for (uint64_t position = 0; position < 64; ++position) {
    Request one = AtPositions(1, Tenths(), row);
    one.rows[0].position = position;
    alone.push_back(Select(*ops_, one).ids[0]);
  }
  request.rows[0].position = 63;
  const int32_t moved = Select(*ops_, request).ids[0];

  EXPECT_EQ(alone, together);
  EXPECT_EQ(moved, together[63]);
}

TEST_P(SelectTokensTest, DrawsOtherTokensForAnotherSeed) {
  const Request one = AtPositions(64, Tenths(), {.temperature = 1, .seed = 1});
  const Request other = AtPositions(64, Tenths(), {.temperature = 1, .seed = 2});

  EXPECT_NE(Select(*ops_, one).ids, Select(*ops_, other).ids);
}

TEST_P(SelectTokensTest, ReportsTheLogprobOfTheChosenTokenFromTheRawLogits) {
  Request request = AtPositions(
      1, Tenths(), {.temperature = 0, .repetition_penalty = 8, .history_end = 1, .bias_end = 1}
  );
  request.history_ids = {1};
  request.history_counts = {1};
  request.bias_ids = {2};
  request.bias_values = {50};

  const Answer answer = Select(*ops_, request);

  EXPECT_THAT(answer.ids, ElementsAre(2));
  ExpectClose(answer.logprobs, {std::log(0.2F)}, 1e-6F);
}

TEST_P(SelectTokensTest, DoesNotLetTemperatureChangeLogprobs) {
  const Answer answer = Select(*ops_, AtPositions(1, Tenths(), {.temperature = 1e-5F}));

  EXPECT_THAT(answer.ids, ElementsAre(1));
  ExpectClose(answer.logprobs, {std::log(0.4F)}, 1e-6F);
}

TEST_P(SelectTokensTest, ReportsTheTopLogprobsByFallingRawLogit) {
  Request request = AtPositions(2, Tenths(), {.bias_end = 1, .top_logprobs = 3});
  request.bias_ids = {0};
  request.bias_values = {50};
  request.rows[1].top_logprobs = 1;

  const Answer answer = Select(*ops_, request);

  EXPECT_THAT(answer.ids, ElementsAre(0, 0));
  EXPECT_THAT(answer.top_ids, ElementsAre(1, 3, 2, 1, kUnwritten, kUnwritten));
  ExpectClose(
      answer.top_logprobs,
      {std::log(0.4F), std::log(0.3F), std::log(0.2F), std::log(0.4F), kUnwritten, kUnwritten},
      1e-6F
  );
}

TEST_P(SelectTokensTest, ListsTheLowestIdFirstAmongEqualTopLogprobs) {
  const Answer answer = Select(*ops_, AtPositions(1, {1, 2, 1, 2, 1}, {.top_logprobs = 4}));

  EXPECT_THAT(answer.top_ids, ElementsAre(1, 3, 0, 2));
}

TEST_P(SelectTokensTest, FillsTheTailWhenTheVocabularyHasFewerThanAskedFor) {
  const Answer answer = Select(*ops_, AtPositions(1, {0, 0}, {.top_logprobs = 3}));

  EXPECT_THAT(answer.top_ids, ElementsAre(0, 1, -1));
  EXPECT_EQ(answer.top_logprobs[2], -kInfinity);
}

TEST_P(SelectTokensTest, RefusesARowWithANonFiniteLogitAndNoOther) {
  for (const float broken : {kNan, kInfinity, -kInfinity}) {
    for (const float temperature : {0.0F, 1.0F}) {
      Request request = AtPositions(3, {0, 1, 0}, {.temperature = temperature, .top_logprobs = 1});
      request.logits[3] = broken;

      const Answer answer = Select(*ops_, request);

      EXPECT_GE(answer.ids[0], 0);
      EXPECT_EQ(answer.ids[1], -1);
      EXPECT_GE(answer.ids[2], 0);
      EXPECT_EQ(answer.logprobs[1], kUnwritten);
      EXPECT_EQ(answer.top_ids[1], kUnwritten);
    }
  }
}

TEST_P(SelectTokensTest, RefusesARowWhoseBiasForbidsEveryToken) {
  for (const float temperature : {0.0F, 1.0F}) {
    Request request = AtPositions(2, {0, 1}, {.temperature = temperature});
    request.rows[0].bias_end = 2;
    request.bias_ids = {0, 1};
    request.bias_values = {-kInfinity, -kInfinity};

    const Answer answer = Select(*ops_, request);

    EXPECT_EQ(answer.ids[0], -1);
    EXPECT_GE(answer.ids[1], 0);
  }
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

// Rows with every combination of the parameters, on random logits.
Request MixedRequest(int64_t vocabulary) {
  Request request = {
      .vocabulary = vocabulary,
      .history_ids = {0, 2, 3},
      .history_counts = {0, 1, 4},
      .bias_ids = {1, 4},
      .bias_values = {2, -kInfinity},
  };
  for (uint64_t bits = 0; bits < 129; ++bits) {
    request.rows.push_back({
        .temperature = (bits & 1) != 0 ? 0.8F : static_cast<float>(bits % 3),
        .top_k = (bits & 2) != 0 ? 5 : 0,
        .top_p = (bits & 4) != 0 ? 0.8F : 1,
        .min_p = (bits & 8) != 0 ? 0.05F : 0,
        .repetition_penalty = (bits & 16) != 0 ? 1.3F : 1,
        .presence_penalty = (bits & 32) != 0 ? 0.4F : 0,
        .frequency_penalty = (bits & 32) != 0 ? 0.1F : 0,
        .seed = bits / 7,
        .position = bits,
        .history_end = 3,
        .bias_end = (bits & 64) != 0 ? 2 : 0,
        .top_logprobs = static_cast<int32_t>(bits % 6),
    });
  }
  request.logits = RandomFloats(vocabulary * 129, 21);
  for (float& logit : request.logits) {
    logit *= 4;
  }
  return request;
}

TEST_P(SelectTokensAgainstReferenceTest, AgreesOnEveryCombinationOfParameters) {
  for (const int64_t vocabulary : {5, 129, 2003}) {
    const Request request = MixedRequest(vocabulary);
    const Answer expected = Select(*reference_, request);

    const Answer actual = Select(*ops_, request);

    EXPECT_THAT(actual.ids, Pointwise(Eq(), expected.ids));
    EXPECT_THAT(actual.top_ids, Pointwise(Eq(), expected.top_ids));
    ExpectClose(actual.logprobs, expected.logprobs, 1e-5F);
    ExpectClose(actual.top_logprobs, expected.top_logprobs, 1e-5F);
  }
}

}  // namespace
}  // namespace switchyard
