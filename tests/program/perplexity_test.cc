#include "program/perplexity.h"

#include <gtest/gtest.h>

#include <cmath>

#include "kernels/backend.h"
#include "program/offline_runner.h"
#include "tests/support/tiny_model.h"

namespace switchyard {
namespace {

void IgnoreProgress(const Prediction& /*so_far*/) {}

// A tiny model with a context of 150 tokens, over the 128 that are computed at once.
class PredictWindowsTest : public ::testing::Test {
 protected:
  PredictWindowsTest() {
    ops_ = *MakeOps(BackendOptions{.device = "reference"});
    TinyModelOptions options;
    options.context_tokens = 150;
    model_ = *LoadTinyModel(TinyFamily::kJetMoe, options, *ops_);
    for (int32_t i = 0; i < 340; ++i) {
      tokens_.push_back((i * 37 + i / 7) % 61);
    }
  }

  // -log softmax of each target, from the logits of one whole forward.
  double NegativeLogLikelihood(
      const std::vector<int32_t>& input, const std::vector<int32_t>& targets
  ) {
    const auto trace =
        *RunForward(*model_, input, std::vector<int64_t>{static_cast<int64_t>(input.size())});
    double total = 0;
    for (size_t row = 0; row < targets.size(); ++row) {
      double sum = 0;
      for (size_t id = 0; id < 61; ++id) {
        sum += std::exp(static_cast<double>(trace.logits[row * 61 + id]));
      }
      total += std::log(sum) -
               static_cast<double>(trace.logits[row * 61 + static_cast<size_t>(targets[row])]);
    }
    return total;
  }

  std::vector<int32_t> Tokens(size_t begin, size_t end) const {
    return {
        tokens_.begin() + static_cast<int64_t>(begin), tokens_.begin() + static_cast<int64_t>(end)};
  }

  std::unique_ptr<Ops> ops_;
  std::unique_ptr<Model> model_;
  std::vector<int32_t> tokens_;
};

TEST_F(PredictWindowsTest, LeadsEachWindowWithBos) {
  double expected = 0;
  for (const auto& [begin, end] :
       std::vector<std::pair<size_t, size_t>>{{0, 150}, {150, 300}, {300, 340}}) {
    std::vector<int32_t> input = Tokens(begin, end - 1);
    input.insert(input.begin(), 1);
    expected += NegativeLogLikelihood(input, Tokens(begin, end));
  }

  const auto prediction = PredictWindows(*model_, tokens_, 1, IgnoreProgress);

  ASSERT_TRUE(prediction.ok()) << prediction.status();
  EXPECT_EQ(prediction->tokens, 340);
  EXPECT_EQ(prediction->predicted_tokens, 340);
  EXPECT_NEAR(prediction->negative_log_likelihood, expected, 1e-6);
}

TEST_F(PredictWindowsTest, LeadsWithTheTokenBeforeWhenThereIsNoBos) {
  double expected = 0;
  for (const auto& [begin, end] :
       std::vector<std::pair<size_t, size_t>>{{1, 151}, {151, 301}, {301, 340}}) {
    expected += NegativeLogLikelihood(Tokens(begin - 1, end - 1), Tokens(begin, end));
  }

  const auto prediction = PredictWindows(*model_, tokens_, std::nullopt, IgnoreProgress);

  ASSERT_TRUE(prediction.ok()) << prediction.status();
  EXPECT_EQ(prediction->predicted_tokens, 339);
  EXPECT_NEAR(prediction->negative_log_likelihood, expected, 1e-6);
}

TEST_F(PredictWindowsTest, TellsItsProgress) {
  std::vector<int64_t> seen;

  const auto prediction = PredictWindows(*model_, tokens_, 1, [&seen](const Prediction& so_far) {
    seen.push_back(so_far.predicted_tokens);
  });

  ASSERT_TRUE(prediction.ok()) << prediction.status();
  EXPECT_EQ(seen, (std::vector<int64_t>{128, 150, 278, 300, 340}));
}

TEST_F(PredictWindowsTest, RefusesATextWithNothingToPredict) {
  const std::vector<int32_t> one = {5};

  EXPECT_EQ(
      PredictWindows(*model_, one, std::nullopt, IgnoreProgress).status().code(),
      StatusCode::kInvalidArgument
  );
  EXPECT_EQ(
      PredictWindows(*model_, {}, 1, IgnoreProgress).status().code(), StatusCode::kInvalidArgument
  );
  EXPECT_TRUE(PredictWindows(*model_, one, 1, IgnoreProgress).ok());
}

TEST(Prediction, TurnsLikelihoodIntoPerplexityAndBits) {
  // 4 tokens at probability 1/8 each: 3 bits a token, 12 bits over 6 bytes.
  Prediction prediction;
  prediction.predicted_tokens = 4;
  prediction.negative_log_likelihood = 4 * std::log(8.0);

  EXPECT_NEAR(prediction.Perplexity(), 8, 1e-12);
  EXPECT_NEAR(prediction.BitsPerByte(6), 2, 1e-12);
}

}  // namespace
}  // namespace switchyard
