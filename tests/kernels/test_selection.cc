#include "tests/kernels/test_selection.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/support/ops_memory.h"

namespace switchyard {

SelectionAnswer Select(Ops& ops, const SelectionRequest& request) {
  OpsMemory memory(ops);
  const size_t rows = request.rows.size();
  int32_t max_top_logprobs = 0;
  for (const SelectTokensRow& row : request.rows) {
    max_top_logprobs = std::max(max_top_logprobs, row.top_logprobs);
  }
  const size_t top_entries = rows * static_cast<size_t>(max_top_logprobs);
  SelectionAnswer answer = {
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
      .allowed_ids = request.allowed_ids.data(),
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

SelectionRequest AtPositions(
    int32_t positions, const std::vector<float>& logits, SelectTokensRow row
) {
  SelectionRequest request = {.vocabulary = static_cast<int64_t>(logits.size())};
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

}  // namespace switchyard
