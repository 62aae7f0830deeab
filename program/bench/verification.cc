#include "program/bench/verification.h"

#include <algorithm>

namespace switchyard {
namespace {

int32_t TokenAt(const std::vector<int32_t>& token_ids, size_t position) {
  return position < token_ids.size() ? token_ids[position] : -1;
}

}  // namespace

StatusOr<Verification> VerifyAlone(
    const Client& client,
    const LoadPlan& plan,
    const std::vector<VerifiableRequest>& requests,
    const std::function<void(int64_t done)>& on_progress
) {
  Verification verification;
  for (const VerifiableRequest& under_load : requests) {
    const v1::GenerateRequest request = plan.At(under_load.index).request;
    const StatusOr<v1::GenerateOnceResponse> response = client.GenerateOnce(request);
    if (!response.ok()) {
      return WithContext(
          response.status(), Concat("running request ", under_load.index, " again alone")
      );
    }
    const std::vector<int32_t> alone(response->token_ids().begin(), response->token_ids().end());
    ++verification.checked;
    if (alone != under_load.token_ids) {
      const auto [first, second] = std::mismatch(
          alone.begin(), alone.end(), under_load.token_ids.begin(), under_load.token_ids.end()
      );
      const auto position = static_cast<size_t>(first - alone.begin());
      verification.mismatches.push_back(
          {.index = under_load.index,
           .position = static_cast<int32_t>(position),
           .under_load = TokenAt(under_load.token_ids, position),
           .alone = TokenAt(alone, position),
           .prompt_tokens = request.prompt_tokens().ids_size()}
      );
    }
    on_progress(verification.checked);
  }
  return verification;
}

}  // namespace switchyard
