#include "base/check.h"
#include "kernels/check_shape.h"
#include "kernels/cpu/cpu_ops.h"
#include "kernels/cpu/row_kernels.h"

namespace switchyard {
namespace {

constexpr int64_t kRowsPerTask = 8;

}  // namespace

void CpuOps::Normalize(const NormalizeArgs& args, TensorView input, TensorView out) {
  if (args.kind == NormKind::kNone) {
    ReferenceOps::Normalize(args, input, out);  // a copy of a few rows
    return;
  }
  const int64_t dim = input.columns();
  CheckRole("weight", args.weight, WeightRole::kVector);
  CheckOptionalVector("weight", args.weight, dim);
  CheckOptionalVector("bias", args.bias, dim);
  CHECK(args.kind == NormKind::kLayer || !args.bias.exists())
      << "a root mean square norm has no bias";
  const int64_t out_rows = args.rows.exists() ? args.rows.elements() : input.rows();
  CheckMatrix("input", input, input.rows(), dim);
  CheckMatrix("out", out, out_rows, dim);

  const NormalizeRowArgs row_args = {
      .kind = args.kind,
      .epsilon = args.epsilon,
      .weight = VectorOf(args.weight, 0),
      .bias = VectorOf(args.bias, 0),
      .dim = dim,
  };
  const int32_t* rows = args.rows.exists() ? args.rows.i32() : nullptr;
  pool_->ParallelFor(out_rows, kRowsPerTask, [&](int64_t begin, int64_t end, int) {
    for (int64_t r = begin; r < end; ++r) {
      const int64_t input_row = rows == nullptr ? r : rows[r];
      CHECK(input_row >= 0 && input_row < input.rows())
          << "row " << input_row << " of " << input.rows();
      NormalizeRow(row_args, input.f32() + input_row * dim, out.f32() + r * dim);
    }
  });
  CountWeightBytes(SourceOf(args.weight).data.bytes());
}

}  // namespace switchyard
