#include "engine/step_statistics.h"

#include <algorithm>
#include <numeric>

#include "base/histogram_bounds.h"
#include "engine/sequence.h"

namespace switchyard {
namespace {

constexpr const auto& kStepSeconds = kSecondsByDecades;
constexpr std::array kStepTokens = {
    1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0, 2048.0, 4096.0, 8192.0};

int64_t& Of(PhaseTokens& tokens, Phase phase) {
  return tokens[static_cast<size_t>(phase)];
}

int64_t Of(const PhaseTokens& tokens, Phase phase) {
  return tokens[static_cast<size_t>(phase)];
}

}  // namespace

PhaseTokens CountPhaseTokens(const std::vector<SequenceSlice>& slices) {
  PhaseTokens tokens = {};
  for (const SequenceSlice& slice : slices) {
    const Sequence& sequence = *slice.sequence;
    const int32_t begin = sequence.computed_tokens;
    const int32_t end = begin + slice.planned.tokens;
    if (sequence.is_warm_up) {
      Of(tokens, Phase::kWarmUp) += end - begin;
      continue;
    }
    const int32_t again = std::clamp(sequence.most_computed_tokens, begin, end);
    const int32_t prompt = std::clamp(sequence.prompt_tokens, again, end);
    Of(tokens, Phase::kRecompute) += again - begin;
    Of(tokens, Phase::kPrefill) += prompt - again;
    Of(tokens, Phase::kDecode) += end - prompt;
  }
  return tokens;
}

StepKind KindOf(const PhaseTokens& tokens) {
  const int64_t decode = Of(tokens, Phase::kDecode);
  if (decode == 0) {
    return StepKind::kPrefill;
  }
  return decode == std::accumulate(tokens.begin(), tokens.end(), int64_t{0}) ? StepKind::kDecode
                                                                             : StepKind::kMixed;
}

StepStatistics::StepStatistics()
    : seconds_{Histogram(kStepSeconds), Histogram(kStepSeconds), Histogram(kStepSeconds)},
      batch_tokens_(kStepTokens) {}

void StepStatistics::CountStep(const PhaseTokens& tokens, double seconds) {
  seconds_[static_cast<size_t>(KindOf(tokens))].Observe(seconds);
  int64_t all = 0;
  for (size_t phase = 0; phase < tokens.size(); ++phase) {
    tokens_[phase].fetch_add(tokens[phase], std::memory_order_relaxed);
    all += tokens[phase];
  }
  batch_tokens_.Observe(static_cast<double>(all));
}

}  // namespace switchyard
