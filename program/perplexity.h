#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "base/status.h"
#include "engine/model/model.h"

namespace switchyard {

// How well a model predicts a text.
struct Prediction {
  int64_t tokens = 0;  // of the text
  int64_t predicted_tokens = 0;
  double negative_log_likelihood = 0;  // sum over the predicted tokens, natural logarithm

  // exp of the mean negative log-likelihood of a predicted token.
  double Perplexity() const;
  // Independent of the tokenizer. `text_bytes` is the length of the text.
  double BitsPerByte(int64_t text_bytes) const;
};

// Called after each chunk with what has been predicted so far.
using PredictionProgress = std::function<void(const Prediction& so_far)>;

// Predicts consecutive windows of context_tokens tokens of `tokens`. Each window is a sequence of
// its own that begins with a token that is not predicted: `bos_id` if given, else the token before
// the window (so that the very first token of the text only leads). INVALID_ARGUMENT when nothing
// is left to predict.
StatusOr<Prediction> PredictWindows(
    const Model& model,
    std::span<const int32_t> tokens,
    std::optional<int32_t> bos_id,
    const PredictionProgress& progress
);

}  // namespace switchyard
