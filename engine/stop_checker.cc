#include "engine/stop_checker.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace switchyard {
namespace {

bool Contains(std::span<const int32_t> ids, int32_t id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

}  // namespace

StopChecker::StopChecker(std::vector<int32_t> eos_ids, int64_t context_tokens)
    : eos_ids_(std::move(eos_ids)), context_tokens_(context_tokens) {}

std::optional<StopMatch> StopChecker::Check(const Sequence& sequence) const {
  CHECK(sequence.CompletionTokens() > 0) << "nothing was generated yet";
  const int32_t last = sequence.tokens.back();
  const StoppingParameters& stopping = sequence.request.stopping;
  const bool is_eos = Contains(EosIds(sequence), last);
  if (is_eos || Contains(stopping.stop_token_ids, last)) {
    return StopMatch{.reason = FinishReason::kStop, .token_id = last, .is_eos = is_eos};
  }
  if (sequence.CompletionTokens() >= stopping.max_tokens ||
      sequence.KnownTokens() >= context_tokens_) {
    return StopMatch{.reason = FinishReason::kLength};
  }
  return std::nullopt;
}

bool StopChecker::MustGoOn(const Sequence& sequence) const {
  return sequence.CompletionTokens() < sequence.request.stopping.min_tokens;
}

std::span<const int32_t> StopChecker::EosIds(const Sequence& sequence) const {
  if (sequence.request.stopping.ignore_eos) {
    return {};
  }
  return eos_ids_;
}

}  // namespace switchyard
