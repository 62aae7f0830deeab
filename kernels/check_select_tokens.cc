#include "kernels/check_select_tokens.h"

#include <cmath>

#include "base/check.h"

namespace switchyard {

void CheckSelectTokensRow(const SelectTokensRow& row, int32_t max_top_logprobs) {
  CHECK(row.temperature >= 0 && std::isfinite(row.temperature))
      << "temperature " << row.temperature;
  CHECK(row.top_k >= 0) << "top_k " << row.top_k;
  CHECK(row.top_p > 0 && row.top_p <= 1) << "top_p " << row.top_p;
  CHECK(row.min_p >= 0 && row.min_p <= 1) << "min_p " << row.min_p;
  CHECK(row.typical_p > 0 && row.typical_p <= 1) << "typical_p " << row.typical_p;
  CHECK(row.repetition_penalty > 0 && std::isfinite(row.repetition_penalty))
      << "repetition_penalty " << row.repetition_penalty;
  CHECK(std::isfinite(row.presence_penalty) && std::isfinite(row.frequency_penalty))
      << "presence_penalty " << row.presence_penalty << " frequency_penalty "
      << row.frequency_penalty;
  CHECK(row.top_logprobs >= 0 && row.top_logprobs <= max_top_logprobs)
      << "top_logprobs " << row.top_logprobs << "; room for " << max_top_logprobs;
}

void CheckAllowedIds(const SelectTokensArgs& args, const SelectTokensRow& row, int64_t vocabulary) {
  int64_t lowest = 0;
  for (int32_t i = row.allowed_begin; i < row.allowed_end; ++i) {
    const int32_t id = args.allowed_ids[i];
    CHECK(id >= lowest && id < vocabulary)
        << "allowed id " << id << " after " << lowest - 1 << "; vocabulary " << vocabulary;
    lowest = int64_t{id} + 1;
  }
}

}  // namespace switchyard
