#include "kernels/check_expert_matmul.h"

#include "base/check.h"
#include "kernels/check_shape.h"

namespace switchyard {

int64_t AssignmentsOfOneRow(RowOf row_of, TensorView expert_ids) {
  switch (row_of) {
    case RowOf::kToken:
      return expert_ids.dim(1) * expert_ids.dim(2);
    case RowOf::kGroup:
      return expert_ids.dim(2);
    case RowOf::kAssignment:
      return 1;
  }
  return 1;
}

void CheckExpertMatMul(const ExpertMatMulArgs& args, TensorView out) {
  const Routing& routing = args.grouped.routing;
  const TensorView& ids = routing.expert_ids;
  CHECK(ids.rank() == 3 && ids.dim(1) >= 1 && ids.dim(2) >= 1) << "ids " << ids.ToString();
  const int64_t assignments = ids.elements();
  const int64_t experts = ids.dim(1) * routing.experts;
  CheckRole("weight", args.weight, WeightRole::kExpertStack);
  CHECK(args.weight.experts == experts)
      << "the weight has " << args.weight.experts << " experts; the routing " << experts;
  CheckElements("gates", routing.gates, DType::kF32, assignments);
  CheckElements("order", args.grouped.order, DType::kI32, assignments);
  CheckElements("offsets", args.grouped.offsets, DType::kI32, experts + 1);
  const int64_t input_rows = assignments / AssignmentsOfOneRow(args.input_rows, ids);
  const int64_t output_rows = assignments / AssignmentsOfOneRow(args.output_rows, ids);
  CheckMatrix("input", args.input, input_rows, args.weight.in_features);
  CheckMatrix("out", out, output_rows, args.weight.out_features);
  CheckOptionalVector("bias", args.bias, args.weight.out_features);
  if (args.expert_bias.exists()) {
    CheckRole("expert_bias", args.expert_bias, WeightRole::kVectorStack);
    CHECK(
        args.expert_bias.experts == experts &&
        args.expert_bias.out_features == args.weight.out_features
    ) << "expert_bias is ["
      << args.expert_bias.experts << ", " << args.expert_bias.out_features << "]";
  }
  CHECK(args.gated || args.output_rows == RowOf::kAssignment)
      << "a sum over assignments without gates";
}

}  // namespace switchyard
