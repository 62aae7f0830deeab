#pragma once

#include "kernels/ops.h"

namespace switchyard {

// What every backend CHECKs of each row on entry to SelectTokens.
void CheckSelectTokensRow(const SelectTokensRow& row, int32_t max_top_logprobs);

// The row's allowed ids ascend without repetition, within the vocabulary. For backends that do not
// see that while they use them.
void CheckAllowedIds(const SelectTokensArgs& args, const SelectTokensRow& row, int64_t vocabulary);

}  // namespace switchyard
