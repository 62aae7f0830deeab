#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "kernels/check_shape.h"
#include "kernels/reference/reference_ops.h"

namespace switchyard {
namespace {

struct Moments {
  float center = 0;
  float inverse_deviation = 0;
};

Moments MomentsOf(const NormalizeArgs& args, const float* row, int64_t dim) {
  Moments moments;
  if (args.kind == NormKind::kLayer) {
    float sum = 0;
    for (int64_t d = 0; d < dim; ++d) {
      sum += row[d];
    }
    moments.center = sum / static_cast<float>(dim);
  }
  float square_sum = 0;
  for (int64_t d = 0; d < dim; ++d) {
    const float centered = row[d] - moments.center;
    square_sum += centered * centered;
  }
  moments.inverse_deviation = 1.0F / std::sqrt(square_sum / static_cast<float>(dim) + args.epsilon);
  return moments;
}

void CopyRows(TensorView rows, TensorView input, TensorView out) {
  const int64_t dim = input.columns();
  const int64_t out_rows = rows.exists() ? rows.elements() : input.rows();
  CheckMatrix("out", out, out_rows, dim);
  for (int64_t r = 0; r < out_rows; ++r) {
    const int64_t input_row = rows.exists() ? rows.i32()[r] : r;
    CHECK(input_row >= 0 && input_row < input.rows())
        << "row " << input_row << " of " << input.rows();
    std::copy_n(input.f32() + input_row * dim, dim, out.f32() + r * dim);
  }
}

}  // namespace

void ReferenceOps::Normalize(const NormalizeArgs& args, TensorView input, TensorView out) {
  const int64_t dim = input.columns();
  if (args.kind == NormKind::kNone) {
    CopyRows(args.rows, input, out);
    return;
  }
  CheckRole("weight", args.weight, WeightRole::kVector);
  CheckOptionalVector("weight", args.weight, dim);
  CheckOptionalVector("bias", args.bias, dim);
  CHECK(args.kind == NormKind::kLayer || !args.bias.exists())
      << "a root mean square norm has no bias";
  const int64_t out_rows = args.rows.exists() ? args.rows.elements() : input.rows();
  CheckMatrix("input", input, input.rows(), dim);
  CheckMatrix("out", out, out_rows, dim);

  const std::vector<float> weight = WidenedVector(args.weight, 0, dim);
  const std::vector<float> bias = WidenedVector(args.bias, 0, dim);
  for (int64_t r = 0; r < out_rows; ++r) {
    const int64_t input_row = args.rows.exists() ? args.rows.i32()[r] : r;
    CHECK(input_row >= 0 && input_row < input.rows())
        << "row " << input_row << " of " << input.rows();
    const float* x = input.f32() + input_row * dim;
    float* y = out.f32() + r * dim;
    const Moments moments = MomentsOf(args, x, dim);
    for (int64_t d = 0; d < dim; ++d) {
      const auto column = static_cast<size_t>(d);
      y[d] = (x[d] - moments.center) * moments.inverse_deviation * weight[column] + bias[column];
    }
  }
  CountWeightBytes(SourceOf(args.weight).data.bytes());
}

}  // namespace switchyard
