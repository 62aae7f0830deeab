#pragma once

#include <cstdint>
#include <vector>

#include "kernels/ops.h"

namespace switchyard {

// A token that may be chosen. Ranked by falling logit, lowest id first among equals.
struct Candidate {
  int32_t id = 0;
  float logit = 0;         // after penalties and bias, before temperature
  double probability = 0;  // among the candidates that are left; they sum to one
  double atypicality = 0;  // scratch of typical_p
};

// Repetition, presence and frequency penalty, bias, then allowed ids, on one row of logits in
// place. Saturates at the largest finite float: afterwards only a forbidden token (bias -infinity,
// or not allowed) is infinite. Requires: finite logits.
void ApplyPenaltiesAndBias(
    const SelectTokensArgs& args, const SelectTokensRow& row, int64_t vocabulary, float* logits
);

// Fills `candidates` with what temperature, top_k, top_p, min_p and typical_p leave, by ascending
// id. Each of them acts on the renormalised distribution that the one before it left. In double.
// Empty when every token is forbidden. Requires: row.temperature > 0; no NaN and no +infinity in
// the logits.
void SamplingDistribution(
    const SelectTokensRow& row,
    const float* logits,
    int64_t vocabulary,
    std::vector<Candidate>& candidates
);

// The inverse of the cumulative distribution at `uniform` in [0, 1). Requires: candidates is not
// empty.
int32_t Draw(const std::vector<Candidate>& candidates, double uniform);

}  // namespace switchyard
