#include "kernels/check_shape.h"
#include "kernels/reference/dot.h"
#include "kernels/reference/reference_ops.h"

namespace switchyard {

void ReferenceOps::MatMul(const MatMulArgs& args, TensorView input, TensorView out) {
  CheckRole("weight", args.weight, WeightRole::kDense);
  const int64_t in_features = args.weight.in_features;
  const int64_t out_features = args.weight.out_features;
  const int64_t rows = input.rows();
  CheckMatrix("input", input, rows, in_features);
  CheckMatrix("out", out, rows, out_features);
  CheckOptionalVector("bias", args.bias, out_features);

  const std::vector<float> bias = WidenedVector(args.bias, 0, out_features);
  for (int64_t o = 0; o < out_features; ++o) {
    const float* feature = WidenedFeature(args.weight, 0, o);
    for (int64_t r = 0; r < rows; ++r) {
      const float product = Dot(input.f32() + r * in_features, feature, in_features);
      out.f32()[r * out_features + o] = product + bias[static_cast<size_t>(o)];
    }
  }
  CountWeightBytes(SourceOf(args.weight).data.bytes());
}

}  // namespace switchyard
