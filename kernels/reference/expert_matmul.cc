#include <algorithm>

#include "base/check.h"
#include "kernels/check_expert_matmul.h"
#include "kernels/reference/dot.h"
#include "kernels/reference/reference_ops.h"

namespace switchyard {

void ReferenceOps::ExpertMatMul(const ExpertMatMulArgs& args, TensorView out) {
  CheckExpertMatMul(args, out);
  const int64_t in_features = args.weight.in_features;
  const int64_t out_features = args.weight.out_features;
  const Routing& routing = args.grouped.routing;
  const std::vector<float> bias = WidenedVector(args.bias, 0, out_features);
  const TensorView& ids = routing.expert_ids;
  const int64_t input_span = AssignmentsOfOneRow(args.input_rows, ids);
  const int64_t output_span = AssignmentsOfOneRow(args.output_rows, ids);
  std::vector<bool> touched(static_cast<size_t>(args.weight.experts), false);

  std::fill(out.f32(), out.f32() + out.elements(), 0.0F);
  for (int64_t a = 0; a < ids.elements(); ++a) {
    const int32_t id = ids.i32()[a];
    if (id < 0) {
      continue;
    }
    CHECK(id < routing.experts) << "expert id " << id << " of " << routing.experts << " experts";
    const int64_t expert = a / ids.dim(2) % ids.dim(1) * routing.experts + id;
    touched[static_cast<size_t>(expert)] = true;
    const std::vector<float> expert_bias = WidenedVector(args.expert_bias, expert, out_features);
    const float gate = args.gated ? routing.gates.f32()[a] : 1.0F;
    const float* x = args.input.f32() + a / input_span * in_features;
    float* y = out.f32() + a / output_span * out_features;
    for (int64_t o = 0; o < out_features; ++o) {
      const float product = Dot(x, WidenedFeature(args.weight, expert, o), in_features);
      y[o] += gate * (product + expert_bias[static_cast<size_t>(o)]);
    }
  }
  for (int64_t row = 0; row < out.rows(); ++row) {
    // The row of an unused slot stays zero; a token whose slots are all unused still has its bias.
    if (args.output_rows == RowOf::kAssignment && ids.i32()[row] < 0) {
      continue;
    }
    for (int64_t o = 0; o < out_features; ++o) {
      out.f32()[row * out_features + o] += bias[static_cast<size_t>(o)];
    }
  }
  const int64_t expert_bytes = SourceOf(args.weight).data.bytes() / args.weight.experts;
  CountWeightBytes(std::count(touched.begin(), touched.end(), true) * expert_bytes);
}

}  // namespace switchyard
