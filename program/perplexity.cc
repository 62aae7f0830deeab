#include "program/perplexity.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "program/offline_runner.h"

namespace switchyard {
namespace {

// Only so many rows of logits are in memory at once: a context of 4096 with 32000 pieces would be
// half a gigabyte.
constexpr int64_t kChunkTokens = 128;

double NegativeLogLikelihood(std::span<const float> logits, int32_t target) {
  const double largest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) {
    sum += std::exp(static_cast<double>(logit) - largest);
  }
  return largest + std::log(sum) - static_cast<double>(logits[static_cast<size_t>(target)]);
}

// Feeds `input` as a new sequence and adds how well each of its tokens predicts the target in its
// place.
Status PredictWindow(
    OfflineSequence& sequence,
    std::span<const int32_t> input,
    std::span<const int32_t> targets,
    const PredictionProgress& progress,
    Prediction& prediction
) {
  sequence.Reset();
  for (size_t begin = 0; begin < input.size(); begin += kChunkTokens) {
    const size_t count = std::min<size_t>(kChunkTokens, input.size() - begin);
    ASSIGN_OR_RETURN(
        const std::span<const float> logits,
        sequence.Feed(input.subspan(begin, count), LogitRows::kAll, nullptr)
    );
    const size_t vocabulary_size = logits.size() / count;
    for (size_t row = 0; row < count; ++row) {
      prediction.negative_log_likelihood += NegativeLogLikelihood(
          logits.subspan(row * vocabulary_size, vocabulary_size), targets[begin + row]
      );
    }
    prediction.predicted_tokens += static_cast<int64_t>(count);
    progress(prediction);
  }
  return OkStatus();
}

}  // namespace

double Prediction::Perplexity() const {
  return std::exp(negative_log_likelihood / static_cast<double>(predicted_tokens));
}

double Prediction::BitsPerByte(int64_t text_bytes) const {
  return negative_log_likelihood / std::log(2.0) / static_cast<double>(text_bytes);
}

StatusOr<Prediction> PredictWindows(
    const Model& model,
    std::span<const int32_t> tokens,
    std::optional<int32_t> bos_id,
    const PredictionProgress& progress
) {
  const size_t first = bos_id.has_value() ? 0 : 1;
  if (tokens.size() <= first) {
    return InvalidArgument(
        "the text has ",
        tokens.size(),
        " tokens; this model needs at least ",
        first + 1,
        " to predict one"
    );
  }
  const auto context_tokens = static_cast<size_t>(model.config().context_tokens);
  const size_t longest = std::min(context_tokens, tokens.size() - first);
  ASSIGN_OR_RETURN(
      const std::unique_ptr<OfflineSequence> sequence,
      OfflineSequence::Create(model, static_cast<int64_t>(longest), kChunkTokens)
  );
  Prediction prediction{.tokens = static_cast<int64_t>(tokens.size())};
  for (size_t begin = first; begin < tokens.size(); begin += context_tokens) {
    const auto targets = tokens.subspan(begin, std::min(context_tokens, tokens.size() - begin));
    std::vector<int32_t> input = {bos_id.has_value() ? *bos_id : tokens[begin - 1]};
    input.insert(input.end(), targets.begin(), targets.end() - 1);
    RETURN_IF_ERROR(PredictWindow(*sequence, input, targets, progress, prediction));
  }
  return prediction;
}

}  // namespace switchyard
