#include "program/bench/verification.h"

#include <algorithm>
#include <string>
#include <unordered_map>

namespace switchyard {
namespace {

int32_t TokenAt(const std::vector<int32_t>& token_ids, size_t position) {
  return position < token_ids.size() ? token_ids[position] : -1;
}

// The request as it is sent again: it takes nothing of what others computed.
v1::GenerateRequest AloneOf(const LoadPlan& plan, uint64_t index) {
  v1::GenerateRequest request = plan.At(index).request;
  request.mutable_scheduling()->set_bypass_prefix_cache(true);
  return request;
}

// Equal for requests with equal answers: a greedy one draws nothing.
std::string IdentityOf(v1::GenerateRequest request) {
  if (request.sampling().has_temperature() && request.sampling().temperature() == 0) {
    request.mutable_sampling()->clear_seed();
  }
  return request.SerializeAsString();
}

}  // namespace

StatusOr<Verification> VerifyAlone(
    const Client& client,
    const LoadPlan& plan,
    const std::vector<VerifiableRequest>& requests,
    const std::function<void(int64_t done)>& on_progress
) {
  Verification verification;
  std::unordered_map<std::string, std::vector<int32_t>> answers;  // of what was sent alone already
  for (const VerifiableRequest& under_load : requests) {
    const v1::GenerateRequest request = AloneOf(plan, under_load.index);
    const auto [answer, is_new] = answers.try_emplace(IdentityOf(request));
    if (is_new) {
      const StatusOr<v1::GenerateOnceResponse> response = client.GenerateOnce(request);
      if (!response.ok()) {
        return WithContext(
            response.status(), Concat("running request ", under_load.index, " again alone")
        );
      }
      answer->second.assign(response->token_ids().begin(), response->token_ids().end());
    }
    const std::vector<int32_t>& alone = answer->second;
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
