#include "engine/prompt_scorer.h"

#include <algorithm>

#include "base/check.h"

namespace switchyard {

Status PromptScorer::Score(
    TensorView hidden,
    TensorView rows,
    std::span<const ScoredToken> tokens,
    Scratch& scratch,
    TensorView logits
) {
  CHECK(rows.dim(0) == static_cast<int64_t>(tokens.size()))
      << rows.ToString() << " for " << tokens.size() << " tokens";
  entries_.clear();
  tops_.clear();
  const int64_t chunk = logits.dim(0);
  for (int64_t begin = 0; begin < rows.dim(0); begin += chunk) {
    const int64_t end = std::min(begin + chunk, rows.dim(0));
    RETURN_IF_ERROR(ScoreChunk(
        hidden,
        rows.Slice(begin, end),
        tokens.subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin)),
        scratch,
        logits.Slice(0, end - begin)
    ));
  }
  return OkStatus();
}

Status PromptScorer::ScoreChunk(
    TensorView hidden,
    TensorView rows,
    std::span<const ScoredToken> tokens,
    Scratch& scratch,
    TensorView logits
) {
  rows_.clear();
  targets_.clear();
  int32_t max_tops = 0;
  for (const ScoredToken& token : tokens) {
    const auto index = static_cast<int32_t>(targets_.size());
    targets_.push_back(token.sequence->tokens[static_cast<size_t>(token.position)]);
    const int32_t tops = std::min<int32_t>(
        token.sequence->request.scoring->top_logprobs, static_cast<int32_t>(logits.dim(1))
    );
    max_tops = std::max(max_tops, tops);
    // Greedy, and only the token that is there allowed: it is chosen, with its log-probability.
    rows_.push_back({.allowed_begin = index, .allowed_end = index + 1, .top_logprobs = tops});
  }
  chosen_.assign(rows_.size(), kLogitsNotFinite);
  chosen_logprobs_.assign(rows_.size(), 0);
  chunk_top_ids_.assign(rows_.size() * static_cast<size_t>(max_tops), -1);
  chunk_top_logprobs_.assign(chunk_top_ids_.size(), 0);
  model_.ComputeLogits(hidden, rows, scratch, logits);
  model_.ops().SelectTokens(
      {.logits = logits, .rows = rows_.data(), .allowed_ids = targets_.data()},
      {.ids = chosen_.data(),
       .logprobs = chosen_logprobs_.data(),
       .top_ids = chunk_top_ids_.data(),
       .top_logprobs = chunk_top_logprobs_.data(),
       .max_top_logprobs = max_tops}
  );
  // The next chunk reuses the arrays and the logits.
  RETURN_IF_ERROR(model_.ops().Finish());
  for (size_t row = 0; row < rows_.size(); ++row) {
    const auto tops = static_cast<size_t>(rows_[row].top_logprobs);
    entries_.push_back(
        {.is_finite = chosen_[row] >= 0,
         .logprob = chosen_logprobs_[row],
         .first_top = tops_.size(),
         .tops = tops}
    );
    for (size_t i = 0; i < tops; ++i) {
      const size_t from = row * static_cast<size_t>(max_tops) + i;
      tops_.push_back({.id = chunk_top_ids_[from], .logprob = chunk_top_logprobs_[from]});
    }
  }
  return OkStatus();
}

ScoredValue PromptScorer::Value(size_t index) const {
  CHECK(index < entries_.size()) << "token " << index << " of " << entries_.size();
  const Entry& entry = entries_[index];
  return {
      .is_finite = entry.is_finite,
      .logprob = entry.logprob,
      .top = std::span(tops_).subspan(entry.first_top, entry.tops)};
}

}  // namespace switchyard
