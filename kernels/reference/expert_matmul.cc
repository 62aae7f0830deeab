#include <algorithm>

#include "base/check.h"
#include "kernels/check_shape.h"
#include "kernels/reference/dot.h"
#include "kernels/reference/reference_ops.h"

namespace switchyard {
namespace {

struct Sizes {
  int64_t tokens = 0;
  int64_t groups = 0;
  int64_t top_k = 0;

  int64_t AssignmentsOfOneRow(RowOf row_of) const {
    switch (row_of) {
      case RowOf::kToken:
        return groups * top_k;
      case RowOf::kGroup:
        return top_k;
      case RowOf::kAssignment:
        return 1;
    }
    return 1;
  }
  int64_t Assignments() const { return tokens * groups * top_k; }
  int64_t Rows(RowOf row_of) const { return Assignments() / AssignmentsOfOneRow(row_of); }
};

Sizes CheckedSizes(const ExpertMatMulArgs& args, TensorView out) {
  const Routing& routing = args.grouped.routing;
  const TensorView& ids = routing.expert_ids;
  CHECK(ids.rank() == 3 && ids.dim(1) >= 1 && ids.dim(2) >= 1)
      << "expert ids are " << ids.ToString();
  const Sizes sizes = {.tokens = ids.dim(0), .groups = ids.dim(1), .top_k = ids.dim(2)};
  const int64_t experts = sizes.groups * routing.experts;
  CheckRole("weight", args.weight, WeightRole::kExpertStack);
  CHECK(args.weight.experts == experts)
      << "the weight has " << args.weight.experts << " experts; the routing " << experts;
  CheckShape("expert_ids", ids, DType::kI32, {sizes.tokens, sizes.groups, sizes.top_k});
  CheckShape("gates", routing.gates, DType::kF32, {sizes.tokens, sizes.groups, sizes.top_k});
  CheckElements("order", args.grouped.order, DType::kI32, sizes.Assignments());
  CheckElements("offsets", args.grouped.offsets, DType::kI32, experts + 1);
  CheckMatrix("input", args.input, sizes.Rows(args.input_rows), args.weight.in_features);
  CheckMatrix("out", out, sizes.Rows(args.output_rows), args.weight.out_features);
  CheckOptionalVector("bias", args.bias, args.weight.out_features);
  if (args.expert_bias.exists()) {
    CheckRole("expert_bias", args.expert_bias, WeightRole::kVectorStack);
    CHECK(
        args.expert_bias.experts == experts &&
        args.expert_bias.out_features == args.weight.out_features
    ) << "expert_bias is ["
      << args.expert_bias.experts << ", " << args.expert_bias.out_features << "]; expected ["
      << experts << ", " << args.weight.out_features << "]";
  }
  CHECK(args.gated || args.output_rows == RowOf::kAssignment)
      << "a sum over assignments without gates";
  return sizes;
}

}  // namespace

void ReferenceOps::ExpertMatMul(const ExpertMatMulArgs& args, TensorView out) {
  const Sizes sizes = CheckedSizes(args, out);
  const int64_t in_features = args.weight.in_features;
  const int64_t out_features = args.weight.out_features;
  const Routing& routing = args.grouped.routing;
  const std::vector<float> bias = WidenedVector(args.bias, 0, out_features);
  const int64_t input_span = sizes.AssignmentsOfOneRow(args.input_rows);
  const int64_t output_span = sizes.AssignmentsOfOneRow(args.output_rows);
  std::vector<bool> touched(static_cast<size_t>(args.weight.experts), false);

  std::fill(out.f32(), out.f32() + out.elements(), 0.0F);
  for (int64_t a = 0; a < sizes.Assignments(); ++a) {
    const int32_t id = routing.expert_ids.i32()[a];
    if (id < 0) {
      continue;
    }
    CHECK(id < routing.experts) << "expert id " << id << " of " << routing.experts << " experts";
    const int64_t expert = a / sizes.top_k % sizes.groups * routing.experts + id;
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
    if (args.output_rows == RowOf::kAssignment && routing.expert_ids.i32()[row] < 0) {
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
