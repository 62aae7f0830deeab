#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/status.h"
#include "clients/cpp/client.h"
#include "program/bench/load_plan.h"
#include "program/bench/load_results.h"

namespace switchyard {

// A request whose tokens differ from those of the same request run alone.
struct Mismatch {
  uint64_t index = 0;
  int32_t position = 0;     // of the first token that differs
  int32_t under_load = -1;  // that token then; -1 when there is none
  int32_t alone = -1;
  int32_t prompt_tokens = 0;  // 0 for a text prompt
};

struct Verification {
  int64_t checked = 0;
  std::vector<Mismatch> mismatches;
};

// Sends each request once more, one at a time, and compares token by token. `on_progress` hears how
// many are done. The error of the first request that does not finish.
StatusOr<Verification> VerifyAlone(
    const Client& client,
    const LoadPlan& plan,
    const std::vector<VerifiableRequest>& requests,
    const std::function<void(int64_t done)>& on_progress
);

}  // namespace switchyard
