#include "kernels/reference/sampling_distribution.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "base/check.h"

namespace switchyard {
namespace {

constexpr float kForbidden = -std::numeric_limits<float>::infinity();
constexpr float kLargest = std::numeric_limits<float>::max();

float Saturated(float logit) {
  return std::clamp(logit, -kLargest, kLargest);
}

bool RanksAbove(const Candidate& a, const Candidate& b) {
  return a.logit > b.logit || (a.logit == b.logit && a.id < b.id);
}

// For the heap functions of the standard library, whose front is the largest.
bool RanksBelow(const Candidate& a, const Candidate& b) {
  return RanksAbove(b, a);
}

bool IsLessTypical(const Candidate& a, const Candidate& b) {
  return a.atypicality > b.atypicality || (a.atypicality == b.atypicality && a.id > b.id);
}

void Renormalise(std::vector<Candidate>& candidates) {
  double sum = 0;
  for (const Candidate& candidate : candidates) {
    sum += candidate.probability;
  }
  for (Candidate& candidate : candidates) {
    candidate.probability /= sum;
  }
}

void SortById(std::vector<Candidate>& candidates) {
  std::sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
    return a.id < b.id;
  });
}

void KeepTopK(size_t top_k, std::vector<Candidate>& candidates) {
  const auto end = candidates.begin() + static_cast<std::ptrdiff_t>(top_k);
  std::nth_element(candidates.begin(), end, candidates.end(), RanksAbove);
  candidates.erase(end, candidates.end());
  SortById(candidates);
  Renormalise(candidates);
}

// The smallest set that holds at least `share` of the probability, the last in `order` first. A
// heap gives up its largest one by one, so the long tail is never sorted.
template <typename Order>
void KeepShare(double share, Order order, std::vector<Candidate>& candidates) {
  std::make_heap(candidates.begin(), candidates.end(), order);
  auto heap_end = candidates.end();
  double sum = 0;
  while (heap_end != candidates.begin() && sum < share) {
    std::pop_heap(candidates.begin(), heap_end, order);
    --heap_end;
    sum += heap_end->probability;
  }
  candidates.erase(candidates.begin(), heap_end);
  SortById(candidates);
  Renormalise(candidates);
}

void KeepMinP(double min_p, std::vector<Candidate>& candidates) {
  double largest = 0;
  for (const Candidate& candidate : candidates) {
    largest = std::max(largest, candidate.probability);
  }
  std::erase_if(candidates, [&](const Candidate& candidate) {
    return candidate.probability < min_p * largest;
  });
  Renormalise(candidates);
}

void KeepTypicalP(double typical_p, std::vector<Candidate>& candidates) {
  double entropy = 0;
  for (const Candidate& candidate : candidates) {
    // What underflowed to zero adds nothing: p log p falls to zero with p.
    if (candidate.probability > 0) {
      entropy -= candidate.probability * std::log(candidate.probability);
    }
  }
  for (Candidate& candidate : candidates) {
    candidate.atypicality = std::abs(-std::log(candidate.probability) - entropy);
  }
  KeepShare(typical_p, IsLessTypical, candidates);
}

void ForbidAllBut(std::span<const int32_t> allowed, int64_t vocabulary, float* logits) {
  int64_t next = 0;
  for (const int32_t id : allowed) {
    CHECK(id >= next && id < vocabulary)
        << "allowed id " << id << " after " << next - 1 << "; vocabulary " << vocabulary;
    std::fill(logits + next, logits + id, kForbidden);
    next = int64_t{id} + 1;
  }
  std::fill(logits + next, logits + vocabulary, kForbidden);
}

}  // namespace

void ApplyPenaltiesAndBias(
    const SelectTokensArgs& args, const SelectTokensRow& row, int64_t vocabulary, float* logits
) {
  for (int32_t i = row.history_begin; i < row.history_end; ++i) {
    const int32_t id = args.history_ids[i];
    CHECK(id >= 0 && id < vocabulary) << "history id " << id << "; vocabulary " << vocabulary;
    const int32_t count = args.history_output_counts[i];
    float logit = logits[id];
    logit = logit > 0 ? logit / row.repetition_penalty : logit * row.repetition_penalty;
    logit = Saturated(logit);
    if (count > 0) {
      logit -= row.presence_penalty;
      logit -= row.frequency_penalty * static_cast<float>(count);
    }
    logits[id] = Saturated(logit);
  }
  for (int32_t i = row.bias_begin; i < row.bias_end; ++i) {
    const int32_t id = args.bias_ids[i];
    CHECK(id >= 0 && id < vocabulary) << "bias id " << id << "; vocabulary " << vocabulary;
    const float bias = args.bias_values[i];
    const bool forbidden = bias == kForbidden || logits[id] == kForbidden;
    logits[id] = forbidden ? kForbidden : Saturated(logits[id] + bias);
  }
  if (row.allowed_begin < row.allowed_end) {
    const std::span allowed(
        args.allowed_ids + row.allowed_begin, args.allowed_ids + row.allowed_end
    );
    ForbidAllBut(allowed, vocabulary, logits);
  }
}

void SamplingDistribution(
    const SelectTokensRow& row,
    const float* logits,
    int64_t vocabulary,
    std::vector<Candidate>& candidates
) {
  candidates.clear();
  const double largest = *std::max_element(logits, logits + vocabulary);
  for (int64_t id = 0; id < vocabulary; ++id) {
    if (logits[id] == kForbidden) {
      continue;
    }
    // The largest is subtracted before the division, so that no temperature, however small,
    // overflows.
    const double exponent = (logits[id] - largest) / row.temperature;
    candidates.push_back(
        {.id = static_cast<int32_t>(id), .logit = logits[id], .probability = std::exp(exponent)}
    );
  }
  Renormalise(candidates);
  if (row.top_k > 0 && static_cast<size_t>(row.top_k) < candidates.size()) {
    KeepTopK(static_cast<size_t>(row.top_k), candidates);
  }
  if (row.top_p < 1) {
    KeepShare(row.top_p, RanksBelow, candidates);
  }
  if (row.min_p > 0) {
    KeepMinP(row.min_p, candidates);
  }
  if (row.typical_p < 1) {
    KeepTypicalP(row.typical_p, candidates);
  }
}

int32_t Draw(const std::vector<Candidate>& candidates, double uniform) {
  double sum = 0;
  // The probabilities may sum to a hair under one: then the last token that can be drawn has the
  // rest.
  int32_t last_possible = candidates.front().id;
  for (const Candidate& candidate : candidates) {
    sum += candidate.probability;
    if (uniform < sum) {
      return candidate.id;
    }
    last_possible = candidate.probability > 0 ? candidate.id : last_possible;
  }
  return last_possible;
}

}  // namespace switchyard
