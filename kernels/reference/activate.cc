#include <cmath>
#include <numbers>

#include "kernels/check_shape.h"
#include "kernels/reference/reference_ops.h"

namespace switchyard {
namespace {

float Activation(ActivationKind kind, float x) {
  switch (kind) {
    case ActivationKind::kIdentity:
      return x;
    case ActivationKind::kRelu:
      return x < 0 ? 0 : x;  // NaN stays NaN
    case ActivationKind::kSilu:
      return x / (1.0F + std::exp(-x));
    case ActivationKind::kGelu:
      return 0.5F * x * (1.0F + std::erf(x / std::numbers::sqrt2_v<float>));
    case ActivationKind::kGeluTanh: {
      const float scale = std::numbers::sqrt2_v<float> * std::numbers::inv_sqrtpi_v<float>;
      return 0.5F * x * (1.0F + std::tanh(scale * (x + 0.044715F * x * x * x)));
    }
    case ActivationKind::kSigmoid:
      return 1.0F / (1.0F + std::exp(-x));
  }
  return x;
}

}  // namespace

void ReferenceOps::Activate(const ActivateArgs& args, TensorView input, TensorView out) {
  const int64_t rows = out.rows();
  const int64_t dim = out.columns();
  const int64_t input_columns = args.gated ? 2 * dim : dim;
  CheckMatrix("out", out, rows, dim);
  CheckMatrix("input", input, rows, input_columns);
  for (int64_t r = 0; r < rows; ++r) {
    const float* x = input.f32() + r * input_columns;
    float* y = out.f32() + r * dim;
    for (int64_t d = 0; d < dim; ++d) {
      const float activated = Activation(args.kind, x[d]);
      y[d] = args.gated ? activated * x[dim + d] : activated;
    }
  }
}

}  // namespace switchyard
