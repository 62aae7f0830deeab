#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/histogram.h"
#include "kernels/ops.h"

namespace switchyard {

struct SequenceSlice;

// What a step computed.
enum class StepKind : uint8_t { kPrefill, kDecode, kMixed };
inline constexpr int32_t kStepKinds = 3;

// Tokens by what their routing counts as.
using PhaseTokens = std::array<int64_t, kPhases>;

// The tokens of a step's slices, which have not been computed yet: as the batch builder labels
// them, and so as every router counts them.
PhaseTokens CountPhaseTokens(const std::vector<SequenceSlice>& slices);

// Of steps whose tokens are all of one kind; tokens that are computed again are prefill.
StepKind KindOf(const PhaseTokens& tokens);

// How the steps of an engine went, since it was made. Written by the engine thread without a lock,
// read by any.
class StepStatistics {
 public:
  StepStatistics();

  void CountStep(const PhaseTokens& tokens, double seconds);

  HistogramSnapshot Seconds(StepKind kind) const {
    return seconds_[static_cast<size_t>(kind)].Snapshot();
  }
  HistogramSnapshot BatchTokens() const { return batch_tokens_.Snapshot(); }
  int64_t Tokens(Phase phase) const { return tokens_[static_cast<size_t>(phase)]; }

 private:
  std::array<Histogram, kStepKinds> seconds_;
  Histogram batch_tokens_;
  std::array<std::atomic<int64_t>, kPhases> tokens_ = {};
};

}  // namespace switchyard
