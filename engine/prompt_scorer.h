#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "engine/model/model.h"
#include "engine/model/scratch.h"
#include "engine/sequence.h"
#include "engine/token_sink.h"

namespace switchyard {

// A token whose log-probability is wanted: logits come from the token before it.
struct ScoredToken {
  Sequence* sequence = nullptr;
  int32_t position = 0;  // of the token, in its sequence
};

struct ScoredValue {
  bool is_finite = false;  // else the rest means nothing
  float logprob = 0;
  std::span<const TokenLogprobValue> top;  // as many as the sequence asked for
};

// Log-probabilities of tokens that are there already. Takes the vocabulary projection in chunks of
// rows, so that no more logits are in memory than for sampling, however long the prompt. Used only
// by the engine thread.
class PromptScorer {
 public:
  // `model` must outlive this.
  explicit PromptScorer(const Model& model) : model_(model) {}

  // rows[i] (int32, device) is the row of `hidden` [tokens, model_dim] before tokens[i]. `logits`
  // [chunk rows, vocabulary] is overwritten. Finishes the device's work; an error is its fault.
  Status Score(
      TensorView hidden,
      TensorView rows,
      std::span<const ScoredToken> tokens,
      Scratch& scratch,
      TensorView logits
  );

  // Of tokens[index] of the last Score; valid until the next one.
  ScoredValue Value(size_t index) const;

 private:
  Status ScoreChunk(
      TensorView hidden,
      TensorView rows,
      std::span<const ScoredToken> tokens,
      Scratch& scratch,
      TensorView logits
  );

  const Model& model_;
  std::vector<SelectTokensRow> rows_;
  std::vector<int32_t> targets_;
  std::vector<int32_t> chosen_;
  std::vector<float> chosen_logprobs_;
  std::vector<int32_t> chunk_top_ids_;
  std::vector<float> chunk_top_logprobs_;

  // Of all chunks.
  struct Entry {
    bool is_finite = false;
    float logprob = 0;
    size_t first_top = 0;
    size_t tops = 0;
  };
  std::vector<Entry> entries_;
  std::vector<TokenLogprobValue> tops_;
};

}  // namespace switchyard
