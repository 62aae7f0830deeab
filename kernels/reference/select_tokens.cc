#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "kernels/check_select_tokens.h"
#include "kernels/check_shape.h"
#include "kernels/random.h"
#include "kernels/reference/reference_ops.h"

namespace switchyard {
namespace {

constexpr float kForbidden = -std::numeric_limits<float>::infinity();
constexpr int32_t kNoToken = -1;

// Without a way out of the loop, so that it is done several at a time.
bool AllFinite(const float* logits, int64_t vocabulary) {
  int64_t not_finite = 0;
  for (int64_t id = 0; id < vocabulary; ++id) {
    not_finite += std::abs(logits[id]) <= std::numeric_limits<float>::max() ? 0 : 1;
  }
  return not_finite == 0;
}

// The lowest id among the largest.
int32_t LargestLogit(const float* logits, int64_t vocabulary) {
  const float* largest = std::max_element(logits, logits + vocabulary);
  return *largest == kForbidden ? kEveryTokenForbidden : static_cast<int32_t>(largest - logits);
}

struct TopLogprobs {
  int32_t count = 0;
  int32_t* ids = nullptr;
  float* logprobs = nullptr;
};

void FillTopLogprobs(
    const float* logits,
    int64_t vocabulary,
    double log_sum,
    std::vector<Candidate>& ranked,
    const TopLogprobs& top
) {
  ranked.clear();
  for (int64_t id = 0; id < vocabulary; ++id) {
    ranked.push_back({.id = static_cast<int32_t>(id), .logit = logits[id]});
  }
  const int64_t filled = std::min<int64_t>(top.count, vocabulary);
  std::partial_sort(
      ranked.begin(),
      ranked.begin() + filled,
      ranked.end(),
      [](const Candidate& a, const Candidate& b) {
        return a.logit > b.logit || (a.logit == b.logit && a.id < b.id);
      }
  );
  for (int32_t i = 0; i < top.count; ++i) {
    const auto place = static_cast<size_t>(i);
    const bool exists = i < filled;
    top.ids[i] = exists ? ranked[place].id : kNoToken;
    top.logprobs[i] = exists ? static_cast<float>(ranked[place].logit - log_sum) : kForbidden;
  }
}

}  // namespace

// In double: the sum runs over the whole vocabulary.
double ReferenceOps::LogSumExp(const float* logits, int64_t vocabulary) const {
  const double largest = *std::max_element(logits, logits + vocabulary);
  double sum = 0;
  for (int64_t id = 0; id < vocabulary; ++id) {
    sum += std::exp(logits[id] - largest);
  }
  return largest + std::log(sum);
}

void ReferenceOps::SelectTokens(const SelectTokensArgs& args, const SelectedTokens& out) {
  const int64_t rows = args.logits.rows();
  const int64_t vocabulary = args.logits.columns();
  CHECK(vocabulary > 0) << "logits are " << args.logits.ToString();
  CheckMatrix("logits", args.logits, rows, vocabulary);
  for (int64_t r = 0; r < rows; ++r) {
    const SelectTokensRow& row = args.rows[r];
    CheckSelectTokensRow(row, out.max_top_logprobs);
    const float* raw = args.logits.f32() + r * vocabulary;
    out.ids[r] = kLogitsNotFinite;
    if (!AllFinite(raw, vocabulary)) {
      continue;
    }
    row_scratch_.assign(raw, raw + vocabulary);
    ApplyPenaltiesAndBias(args, row, vocabulary, row_scratch_.data());
    int32_t chosen = LargestLogit(row_scratch_.data(), vocabulary);
    if (chosen != kEveryTokenForbidden && row.temperature > 0) {
      SamplingDistribution(row, row_scratch_.data(), vocabulary, candidates_);
      chosen = Draw(candidates_, UniformDraw(row.seed, row.position));
    }
    out.ids[r] = chosen;
    if (chosen == kEveryTokenForbidden || out.logprobs == nullptr) {
      continue;
    }
    const double log_sum = LogSumExp(raw, vocabulary);
    out.logprobs[r] = static_cast<float>(raw[chosen] - log_sum);
    if (row.top_logprobs > 0) {
      const int64_t first = r * out.max_top_logprobs;
      const TopLogprobs top = {row.top_logprobs, out.top_ids + first, out.top_logprobs + first};
      FillTopLogprobs(raw, vocabulary, log_sum, candidates_, top);
    }
  }
}

}  // namespace switchyard
