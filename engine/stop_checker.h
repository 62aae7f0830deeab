#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/sequence.h"
#include "engine/token_sink.h"

namespace switchyard {

struct StopMatch {
  FinishReason reason = FinishReason::kStop;  // or kLength
  std::optional<int32_t> token_id = {};       // of kStop
  bool is_eos = false;
};

// Decides by token ids and lengths whether a sequence is complete; stop strings are the sink's
// business. Thread-compatible.
class StopChecker {
 public:
  StopChecker(std::vector<int32_t> eos_ids, int64_t context_tokens);

  // Whether the sequence ends with its last token. Requires: that token was generated. A stop token
  // wins over the length.
  std::optional<StopMatch> Check(const Sequence& sequence) const;

  // Until min_tokens are there, tokens that would end the sequence must not be chosen.
  bool MustGoOn(const Sequence& sequence) const;
  // The model's end-of-sequence ids; none with ignore_eos, as they are tokens like any other then.
  std::span<const int32_t> EosIds(const Sequence& sequence) const;

 private:
  std::vector<int32_t> eos_ids_;
  int64_t context_tokens_;
};

}  // namespace switchyard
