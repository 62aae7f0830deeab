#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/sequence.h"
#include "engine/stop_checker.h"
#include "engine/token_sink.h"
#include "kernels/ops.h"

namespace switchyard {

// The next token of one sequence.
struct Selection {
  int32_t id = 0;  // or kLogitsNotFinite, or kEveryTokenForbidden
  float logprob = 0;
  std::span<const TokenLogprobValue> top;  // as many as the request asked for
};

// Turns each sampling sequence's parameters, history and stop rules into the rows of SelectTokens.
// Used only by the engine thread.
class Sampler {
 public:
  struct Limits {
    int32_t max_rows = 0;
    int64_t vocabulary_size = 0;
    int64_t context_tokens = 0;
  };
  // `ops` and `stop_checker` must outlive this.
  Sampler(Ops& ops, const StopChecker& stop_checker, const Limits& limits);

  // What choosing the next token of sequences[r] from row r of `logits` [rows, vocabulary] takes;
  // the logits need not be there yet. A draw depends on the sequence's seed and length only, never
  // on its neighbours. Valid until the next Gather.
  SelectTokensArgs Gather(TensorView logits, std::span<const Sequence* const> sequences);
  // Chooses by what was gathered last; overwrites the logits. What was chosen may be read after
  // ops.Finish().
  void Select(const SelectTokensArgs& gathered);

  // Of the last Select; valid until the next Gather. Requires: ops.Finish() since.
  Selection Chosen(size_t row);

 private:
  void AddRow(const Sequence& sequence);
  void AddBias(const Sequence& sequence);
  void Forbid(int32_t token_id);
  void ForbidEndsOfBadWords(const Sequence& sequence);

  Ops& ops_;
  const StopChecker& stop_checker_;
  int32_t vocabulary_size_;

  std::vector<SelectTokensRow> rows_;
  std::vector<int32_t> history_ids_;
  std::vector<int32_t> history_output_counts_;
  std::vector<int32_t> bias_ids_;
  std::vector<float> bias_values_;
  std::vector<int32_t> allowed_ids_;

  std::vector<int32_t> chosen_ids_;
  std::vector<float> chosen_logprobs_;
  int32_t max_top_logprobs_ = 0;        // of the last Gather
  std::vector<int32_t> top_ids_;        // [rows, max_top_logprobs_]
  std::vector<float> top_logprobs_;     // as top_ids_
  std::vector<TokenLogprobValue> top_;  // of the last Chosen
};

}  // namespace switchyard
