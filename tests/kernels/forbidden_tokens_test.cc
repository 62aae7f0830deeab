#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/kernels/op_test.h"
#include "tests/kernels/test_selection.h"

namespace switchyard {
namespace {

using testing::ElementsAre;

// What SelectTokens never chooses, and the rows that it refuses.

class ForbiddenTokensTest : public OpTest {};
INSTANTIATE_TEST_SUITE_P(
    Backends, ForbiddenTokensTest, testing::ValuesIn(BackendNames()), BackendTestName
);

TEST_P(ForbiddenTokensTest, ChoosesOnlyAllowedTokens) {
  SelectionRequest drawn =
      AtPositions(20000, Tenths(), {.temperature = 1, .seed = 20, .allowed_end = 2});
  drawn.allowed_ids = {0, 3};
  SelectionRequest greedy = AtPositions(1, Tenths(), {.temperature = 0, .allowed_end = 2});
  greedy.allowed_ids = {0, 2};

  ExpectFrequencies(Select(*ops_, drawn).ids, {0.25, 0, 0, 0.75});
  EXPECT_THAT(Select(*ops_, greedy).ids, ElementsAre(2));
}

TEST_P(ForbiddenTokensTest, UsesEachRowsOwnPartOfTheAllowedIds) {
  SelectionRequest request = AtPositions(4, {4, 3, 1}, {});
  request.allowed_ids = {2, 1, 2};
  request.rows[0].allowed_end = 1;
  request.rows[1].allowed_begin = 1;
  request.rows[1].allowed_end = 3;
  request.rows[2].allowed_begin = 3;
  request.rows[2].allowed_end = 3;

  EXPECT_THAT(Select(*ops_, request).ids, ElementsAre(2, 1, 0, 0));
}

TEST_P(ForbiddenTokensTest, ReportsLogprobsOfTheRawLogitsWhateverIsForbidden) {
  SelectionRequest request =
      AtPositions(1, Tenths(), {.bias_end = 1, .allowed_end = 2, .top_logprobs = 2});
  request.bias_ids = {3};
  request.bias_values = {-kInfinity};
  request.allowed_ids = {0, 3};

  const SelectionAnswer answer = Select(*ops_, request);

  EXPECT_THAT(answer.ids, ElementsAre(0));
  ExpectClose(answer.logprobs, {std::log(0.1F)}, 1e-6F);
  EXPECT_THAT(answer.top_ids, ElementsAre(1, 3));
  ExpectClose(answer.top_logprobs, {std::log(0.4F), std::log(0.3F)}, 1e-6F);
}

TEST_P(ForbiddenTokensTest, NeverChoosesAForbiddenToken) {
  SelectionRequest request =
      AtPositions(2000, Tenths(), {.temperature = 1, .seed = 16, .bias_end = 2});
  request.bias_ids = {1, 0};
  request.bias_values = {-kInfinity, -kInfinity};

  ExpectFrequencies(Select(*ops_, request).ids, {0, 0, 0.4, 0.6});
}

TEST_P(ForbiddenTokensTest, RefusesARowWithANonFiniteLogitAndNoOther) {
  for (const float broken : {kNan, kInfinity, -kInfinity}) {
    for (const float temperature : {0.0F, 1.0F}) {
      SelectionRequest request =
          AtPositions(3, {0, 1, 0}, {.temperature = temperature, .top_logprobs = 1});
      request.logits[3] = broken;

      const SelectionAnswer answer = Select(*ops_, request);

      EXPECT_GE(answer.ids[0], 0);
      EXPECT_EQ(answer.ids[1], kLogitsNotFinite);
      EXPECT_GE(answer.ids[2], 0);
      EXPECT_EQ(answer.logprobs[1], kUnwritten);
      EXPECT_EQ(answer.top_ids[1], kUnwritten);
    }
  }
}

TEST_P(ForbiddenTokensTest, RefusesARowWhoseBiasForbidsEveryToken) {
  for (const float temperature : {0.0F, 1.0F}) {
    SelectionRequest request = AtPositions(2, {0, 1}, {.temperature = temperature});
    request.rows[0].bias_end = 2;
    request.bias_ids = {0, 1};
    request.bias_values = {-kInfinity, -kInfinity};

    const SelectionAnswer answer = Select(*ops_, request);

    EXPECT_EQ(answer.ids[0], kEveryTokenForbidden);
    EXPECT_EQ(answer.logprobs[0], kUnwritten);
    EXPECT_GE(answer.ids[1], 0);
  }
}

TEST_P(ForbiddenTokensTest, RefusesARowWhoseBiasForbidsEveryAllowedToken) {
  for (const float temperature : {0.0F, 1.0F}) {
    SelectionRequest request =
        AtPositions(2, {0, 1, 2}, {.temperature = temperature, .allowed_end = 1});
    request.rows[0].bias_end = 1;
    request.bias_ids = {2};
    request.bias_values = {-kInfinity};
    request.allowed_ids = {2};

    EXPECT_THAT(Select(*ops_, request).ids, ElementsAre(kEveryTokenForbidden, 2));
  }
}

TEST_P(ForbiddenTokensTest, NamesLogitsThatAreNotFiniteEvenWhereNoTokenIsLeft) {
  SelectionRequest request = AtPositions(1, {0, kNan}, {.bias_end = 1, .allowed_end = 1});
  request.bias_ids = {0};
  request.bias_values = {-kInfinity};
  request.allowed_ids = {0};

  EXPECT_THAT(Select(*ops_, request).ids, ElementsAre(kLogitsNotFinite));
}

}  // namespace
}  // namespace switchyard
