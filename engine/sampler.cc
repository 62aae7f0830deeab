#include "engine/sampler.h"

#include <algorithm>
#include <limits>

#include "base/check.h"

namespace switchyard {
namespace {

// What is reserved at load for lists whose length the requests decide. Longer ones make the arrays
// grow, once.
constexpr int64_t kReservedHistory = int64_t{1} << 20;
constexpr size_t kReservedBias = 1 << 14;
constexpr size_t kReservedTopLogprobs = 32;

// Whether `tokens` end with all of `word` but its last token.
bool IsAboutToEnd(std::span<const int32_t> word, std::span<const int32_t> tokens) {
  const std::span<const int32_t> head = word.first(word.size() - 1);
  return head.size() <= tokens.size() && std::ranges::equal(head, tokens.last(head.size()));
}

}  // namespace

Sampler::Sampler(Ops& ops, const StopChecker& stop_checker, const Limits& limits)
    : ops_(ops),
      stop_checker_(stop_checker),
      vocabulary_size_(static_cast<int32_t>(limits.vocabulary_size)) {
  const auto max_rows = static_cast<size_t>(limits.max_rows);
  const auto history = static_cast<size_t>(std::min(
      kReservedHistory, limits.max_rows * std::min(limits.vocabulary_size, limits.context_tokens)
  ));
  rows_.reserve(max_rows);
  history_ids_.reserve(history);
  history_output_counts_.reserve(history);
  bias_ids_.reserve(kReservedBias);
  bias_values_.reserve(kReservedBias);
  chosen_ids_.reserve(max_rows);
  chosen_logprobs_.reserve(max_rows);
  top_ids_.reserve(max_rows * kReservedTopLogprobs);
  top_logprobs_.reserve(max_rows * kReservedTopLogprobs);
  top_.reserve(kReservedTopLogprobs);
}

SelectTokensArgs Sampler::Gather(TensorView logits, std::span<const Sequence* const> sequences) {
  CHECK(logits.dim(0) == static_cast<int64_t>(sequences.size()))
      << logits.ToString() << " for " << sequences.size() << " sequences";
  rows_.clear();
  history_ids_.clear();
  history_output_counts_.clear();
  bias_ids_.clear();
  bias_values_.clear();
  allowed_ids_.clear();
  max_top_logprobs_ = 0;
  for (const Sequence* sequence : sequences) {
    AddRow(*sequence);
    max_top_logprobs_ = std::max(max_top_logprobs_, rows_.back().top_logprobs);
  }
  chosen_ids_.assign(rows_.size(), -1);
  chosen_logprobs_.assign(rows_.size(), 0);
  top_ids_.assign(rows_.size() * static_cast<size_t>(max_top_logprobs_), -1);
  top_logprobs_.assign(top_ids_.size(), 0);
  return {
      .logits = logits,
      .rows = rows_.data(),
      .history_ids = history_ids_.data(),
      .history_output_counts = history_output_counts_.data(),
      .bias_ids = bias_ids_.data(),
      .bias_values = bias_values_.data(),
      .allowed_ids = allowed_ids_.data()};
}

void Sampler::Select(const SelectTokensArgs& gathered) {
  ops_.SelectTokens(
      gathered,
      {.ids = chosen_ids_.data(),
       .logprobs = chosen_logprobs_.data(),
       .top_ids = top_ids_.data(),
       .top_logprobs = top_logprobs_.data(),
       .max_top_logprobs = max_top_logprobs_}
  );
}

Selection Sampler::Chosen(size_t row) {
  CHECK(row < rows_.size()) << "row " << row << " of " << rows_.size();
  const size_t first = row * static_cast<size_t>(max_top_logprobs_);
  top_.clear();
  for (size_t i = 0; i < static_cast<size_t>(rows_[row].top_logprobs); ++i) {
    top_.push_back({.id = top_ids_[first + i], .logprob = top_logprobs_[first + i]});
  }
  return {.id = chosen_ids_[row], .logprob = chosen_logprobs_[row], .top = top_};
}

void Sampler::AddRow(const Sequence& sequence) {
  const SamplingParameters& sampling = sequence.request.sampling;
  SelectTokensRow row{
      .temperature = sampling.temperature,
      .top_k = sampling.top_k,
      .top_p = sampling.top_p,
      .min_p = sampling.min_p,
      .typical_p = sampling.typical_p,
      .repetition_penalty = sampling.repetition_penalty,
      .presence_penalty = sampling.presence_penalty,
      .frequency_penalty = sampling.frequency_penalty,
      .seed = sampling.seed,
      .position = static_cast<uint64_t>(sequence.KnownTokens()),
      .history_begin = static_cast<int32_t>(history_ids_.size()),
      .bias_begin = static_cast<int32_t>(bias_ids_.size()),
      .allowed_begin = static_cast<int32_t>(allowed_ids_.size()),
      .top_logprobs = std::clamp(sampling.top_logprobs.value_or(0), 0, vocabulary_size_)};
  const std::span<const int32_t> ids = sequence.history.ids();
  const std::span<const int32_t> counts = sequence.history.output_counts();
  history_ids_.insert(history_ids_.end(), ids.begin(), ids.end());
  history_output_counts_.insert(history_output_counts_.end(), counts.begin(), counts.end());
  AddBias(sequence);
  allowed_ids_.insert(
      allowed_ids_.end(), sampling.allowed_token_ids.begin(), sampling.allowed_token_ids.end()
  );
  row.history_end = static_cast<int32_t>(history_ids_.size());
  row.bias_end = static_cast<int32_t>(bias_ids_.size());
  row.allowed_end = static_cast<int32_t>(allowed_ids_.size());
  rows_.push_back(row);
}

void Sampler::AddBias(const Sequence& sequence) {
  for (const auto& [token_id, bias] : sequence.request.sampling.logit_bias) {
    bias_ids_.push_back(token_id);
    bias_values_.push_back(bias);
  }
  const auto forbid = [this](int32_t token_id) { Forbid(token_id); };
  ForbidEndsOfBadWords(sequence);
  if (sequence.request.sampling.no_repeat_ngram_tokens > 0) {
    sequence.ngrams.ForEachRepeat(sequence.tokens, forbid);
  }
  if (stop_checker_.MustGoOn(sequence)) {
    std::ranges::for_each(stop_checker_.EosIds(sequence), forbid);
    std::ranges::for_each(sequence.request.stopping.stop_token_ids, forbid);
  }
}

void Sampler::ForbidEndsOfBadWords(const Sequence& sequence) {
  for (const std::vector<int32_t>& word : sequence.request.sampling.bad_words) {
    if (IsAboutToEnd(word, sequence.tokens)) {
      Forbid(word.back());
    }
  }
}

void Sampler::Forbid(int32_t token_id) {
  bias_ids_.push_back(token_id);
  bias_values_.push_back(-std::numeric_limits<float>::infinity());
}

}  // namespace switchyard
