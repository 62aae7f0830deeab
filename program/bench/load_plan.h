#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "program/bench/length_distribution.h"
#include "switchyard/v1/inference.pb.h"

namespace switchyard {

// A prompt of a file, and its own number of tokens to generate if the file gives one.
struct TextPrompt {
  std::string text;
  std::optional<int32_t> max_tokens;
};

// One JSON object a line: {"prompt": "...", "max_tokens": N}; max_tokens may be absent, empty lines
// are skipped. INVALID_ARGUMENT naming file and line.
StatusOr<std::vector<TextPrompt>> ReadPromptFile(const std::string& path);

// What every request of a load looks like.
struct LoadShape {
  uint64_t seed = 0;
  LengthDistribution prompt_tokens = LengthDistribution::Fixed(128);
  LengthDistribution output_tokens = LengthDistribution::Fixed(64);
  std::vector<TextPrompt> text_prompts =
      {};                            // instead of drawn token ids, taken in turn; empty: none
  int32_t shared_prefix_tokens = 0;  // put before the drawn ids of shared_prefix_share
  double shared_prefix_share = 1;
  float temperature = 0;
  double cancel_share = 0;  // each request is at most one of these three; they add up to at most 1
  double deadline_share = 0;
  double stall_share = 0;
  double verify_share = 0;  // independent of the others
};

// Names the flag, the value and the limit of what this model cannot be asked for.
Status CheckShape(const LoadShape& shape, const v1::GetModelInfoResponse& model);

// What the client does to its own request.
enum class Disturbance : uint8_t { kNone, kCancel, kDeadline, kStall };

struct PlannedRequest {
  uint64_t index = 0;
  v1::GenerateRequest request;
  Disturbance disturbance = Disturbance::kNone;
  // kCancel and kStall: after how many tokens, less than max_tokens. A cancel after 0 tokens comes
  // after `early` times a typical time to the first token, so that it also meets requests that
  // wait.
  int32_t disturbed_after_tokens = 0;
  double early = 0;
  bool verify = false;
};

// The load as a pure function: a request depends on (shape, model, index) alone, so that it can be
// sent once more without having been kept. Safe to use from any number of threads.
class LoadPlan {
 public:
  // Requires: CheckShape passed. `vocabulary_size` is that of GetModelInfo.
  LoadPlan(LoadShape shape, int32_t vocabulary_size);

  PlannedRequest At(uint64_t index) const;
  // Seconds between the arrivals of index - 1 and index when arrivals are a Poisson process of
  // `rate_per_second`.
  double ArrivalGapSeconds(uint64_t index, double rate_per_second) const;

  const LoadShape& shape() const { return shape_; }

 private:
  void SetPrompt(
      uint64_t index, int32_t prompt_tokens, bool has_prefix, v1::GenerateRequest& request
  ) const;

  LoadShape shape_;
  int32_t vocabulary_size_;
  std::vector<int32_t> shared_prefix_;
};

}  // namespace switchyard
