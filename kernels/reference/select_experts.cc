#include <cmath>
#include <limits>

#include "base/check.h"
#include "kernels/check_shape.h"
#include "kernels/reference/reference_ops.h"

namespace switchyard {
namespace {

// NaN ranks below every number, -infinity included.
bool RanksAbove(float a, float b) {
  return a > b || (std::isnan(b) && !std::isnan(a));
}

float LargestOf(const float* scores, int64_t count) {
  float largest = -std::numeric_limits<float>::infinity();
  for (int64_t i = 0; i < count; ++i) {
    largest = scores[i] > largest ? scores[i] : largest;
  }
  return largest;
}

float SoftmaxSum(const float* scores, int64_t count, float largest) {
  float sum = 0;
  for (int64_t i = 0; i < count; ++i) {
    sum += std::exp(scores[i] - largest);
  }
  return sum;
}

// Insertion into a list sorted by falling rank keeps the lowest expert first among equals. Returns
// how far the last that was chosen is above the best that was not.
float SelectLargest(const float* scores, int64_t experts, int64_t top_k, int32_t* ids) {
  int64_t chosen = 0;
  float left_out = std::numeric_limits<float>::quiet_NaN();
  const auto leave_out = [&left_out](float score) {
    left_out = RanksAbove(score, left_out) ? score : left_out;
  };
  for (int64_t e = 0; e < experts; ++e) {
    int64_t place = chosen;
    while (place > 0 && RanksAbove(scores[e], scores[ids[place - 1]])) {
      --place;
    }
    if (place == top_k) {
      leave_out(scores[e]);
      continue;
    }
    if (chosen == top_k) {
      leave_out(scores[ids[top_k - 1]]);
    }
    chosen = chosen < top_k ? chosen + 1 : chosen;
    for (int64_t i = chosen - 1; i > place; --i) {
      ids[i] = ids[i - 1];
    }
    ids[place] = static_cast<int32_t>(e);
  }
  return top_k == experts ? 0 : scores[ids[top_k - 1]] - left_out;
}

void ComputeGates(
    GateKind kind, const float* scores, int64_t experts, TensorView ids_view, float* gates
) {
  const int32_t* ids = ids_view.i32();
  const int64_t top_k = ids_view.elements();
  for (int64_t i = 0; i < top_k; ++i) {
    gates[i] = scores[ids[i]];  // the chosen scores first, then what becomes of them
  }
  if (kind == GateKind::kSigmoid) {
    for (int64_t i = 0; i < top_k; ++i) {
      gates[i] = 1.0F / (1.0F + std::exp(-gates[i]));
    }
    return;
  }
  const bool all = kind == GateKind::kSoftmaxAll;
  const float* pool = all ? scores : gates;
  const int64_t pool_size = all ? experts : top_k;
  const float largest = LargestOf(pool, pool_size);
  const float sum = SoftmaxSum(pool, pool_size, largest);
  for (int64_t i = 0; i < top_k; ++i) {
    gates[i] = std::exp(gates[i] - largest) / sum;
  }
}

}  // namespace

void ReferenceOps::SelectExperts(GateKind gate, TensorView scores, const Routing& out) {
  CHECK(scores.rank() == 3) << "scores are " << scores.ToString();
  const int64_t tokens = scores.dim(0);
  const int64_t groups = scores.dim(1);
  const int64_t experts = scores.dim(2);
  CHECK(out.expert_ids.rank() == 3) << "expert ids are " << out.expert_ids.ToString();
  const int64_t top_k = out.expert_ids.dim(2);
  CHECK(out.experts == experts && top_k >= 1 && top_k <= experts)
      << "top_k=" << top_k << " out.experts=" << out.experts << " scores " << scores.ToString();
  CheckShape("expert_ids", out.expert_ids, DType::kI32, {tokens, groups, top_k});
  CheckShape("gates", out.gates, DType::kF32, {tokens, groups, top_k});
  if (out.margins.exists()) {
    CheckShape("margins", out.margins, DType::kF32, {tokens, groups});
  }

  for (int64_t row = 0; row < tokens * groups; ++row) {
    const float* row_scores = scores.f32() + row * experts;
    int32_t* ids = out.expert_ids.i32() + row * top_k;
    const float margin = SelectLargest(row_scores, experts, top_k, ids);
    if (out.margins.exists()) {
      out.margins.f32()[row] = margin;
    }
    const TensorView chosen(ids, DType::kI32, {top_k});
    ComputeGates(gate, row_scores, experts, chosen, out.gates.f32() + row * top_k);
  }
}

}  // namespace switchyard
