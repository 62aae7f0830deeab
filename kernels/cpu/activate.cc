#include <algorithm>

#include "kernels/check_shape.h"
#include "kernels/cpu/cpu_ops.h"
#include "kernels/cpu/row_kernels.h"

namespace switchyard {
namespace {

constexpr int64_t kFloatsPerTask = 4096;

}  // namespace

void CpuOps::Activate(const ActivateArgs& args, TensorView input, TensorView out) {
  const int64_t rows = out.rows();
  const int64_t dim = out.columns();
  const int64_t input_columns = args.gated ? 2 * dim : dim;
  CheckMatrix("out", out, rows, dim);
  CheckMatrix("input", input, rows, input_columns);
  const int64_t grain = std::max<int64_t>(kFloatsPerTask / std::max<int64_t>(dim, 1), 1);
  pool_->ParallelFor(rows, grain, [&](int64_t begin, int64_t end, int) {
    for (int64_t r = begin; r < end; ++r) {
      const float* row = input.f32() + r * input_columns;
      const ActivateRowArgs row_args = {
          .kind = args.kind,
          .factor = args.gated ? row + dim : nullptr,
          .dim = dim,
      };
      ActivateRow(row_args, row, out.f32() + r * dim);
    }
  });
}

}  // namespace switchyard
