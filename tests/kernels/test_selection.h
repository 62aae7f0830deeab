#pragma once

#include <cstdint>
#include <vector>

#include "kernels/ops.h"

// One call of SelectTokens, for tests.

namespace switchyard {

// What an answer holds where the verb wrote nothing.
inline constexpr int32_t kUnwritten = -99;

struct SelectionRequest {
  int64_t vocabulary = 0;
  std::vector<float> logits = {};  // of all rows
  std::vector<SelectTokensRow> rows = {};
  std::vector<int32_t> history_ids = {};
  std::vector<int32_t> history_counts = {};
  std::vector<int32_t> bias_ids = {};
  std::vector<float> bias_values = {};
  std::vector<int32_t> allowed_ids = {};
};

struct SelectionAnswer {
  std::vector<int32_t> ids;
  std::vector<float> logprobs;
  std::vector<int32_t> top_ids;
  std::vector<float> top_logprobs;
};

SelectionAnswer Select(Ops& ops, const SelectionRequest& request);

// The same logits at positions 0, 1, 2, ... of one sequence.
SelectionRequest AtPositions(
    int32_t positions, const std::vector<float>& logits, SelectTokensRow row
);

// Logits of the probabilities 0.1, 0.4, 0.2 and 0.3.
std::vector<float> Tenths();

// Compares how often each token was chosen with its probability: Pearson's statistic over its
// degrees of freedom. With a fixed seed this is one number for ever; 25 at three degrees would
// happen to one seed in sixty thousand.
void ExpectFrequencies(const std::vector<int32_t>& ids, const std::vector<double>& probabilities);

}  // namespace switchyard
