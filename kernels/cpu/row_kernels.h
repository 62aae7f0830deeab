#pragma once

#include <cstdint>

#include "kernels/ops.h"

// Verbs on one row of floats. Lanes take every kLanes-th element from the first one on, whatever
// lies beside the row; the exponential and the hyperbolic tangent are Highway's, accurate to a few
// units in the last place.

namespace switchyard {

struct NormalizeRowArgs {
  NormKind kind = NormKind::kRms;
  float epsilon = 0;
  const float* weight = nullptr;  // [dim]
  const float* bias = nullptr;    // [dim]; may be null
  int64_t dim = 0;
};
// `out` may be `input`.
void NormalizeRow(const NormalizeRowArgs& args, const float* input, float* out);

// out[d] = activation(input[d]) * factor[d]; the factor may be null. `out` may be either.
struct ActivateRowArgs {
  ActivationKind kind = ActivationKind::kIdentity;
  const float* factor = nullptr;
  int64_t dim = 0;
};
void ActivateRow(const ActivateRowArgs& args, const float* input, float* out);

// Replaces products by exp(scale * product - largest) and returns their sum.
// Requires: count >= 1, and room for a multiple of kSoftmaxPadding floats.
inline constexpr int64_t kSoftmaxPadding = 16;
float ExponentialsRow(float scale, float* products, int64_t count);

// log(sum of exp(logits[i])). Runs of kLogSumRun are added in float32, their sums in float64.
// Requires: count >= 1, all finite.
inline constexpr int64_t kLogSumRun = 1024;
double LogSumExpRow(const float* logits, int64_t count);

}  // namespace switchyard
