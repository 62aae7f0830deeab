#include <algorithm>

#include "kernels/check_shape.h"
#include "kernels/cpu/cpu_ops.h"

namespace switchyard {
namespace {

// Rows of one task: enough to pay for widening a weight once for all of them.
constexpr int64_t kRowsPerTask = 128;
constexpr int64_t kFloatsPerCopyTask = 16384;

}  // namespace

void CpuOps::MatMul(const MatMulArgs& args, TensorView input, TensorView out) {
  CheckRole("weight", args.weight, WeightRole::kDense);
  const int64_t rows = input.rows();
  const int64_t out_features = args.weight.out_features;
  CheckMatrix("input", input, rows, args.weight.in_features);
  CheckMatrix("out", out, rows, out_features);
  CheckOptionalVector("bias", args.bias, out_features);

  const WeightMatrix matrix = MatrixOf(args.weight, 0);
  const Rows prepared = PreparedInput(matrix, input);
  const auto inputs = input_pointers_.For<const float*>(rows);
  const auto outputs = output_pointers_.For<float*>(rows);
  for (int64_t r = 0; r < rows; ++r) {
    inputs[r] = prepared.data + r * prepared.stride;
    outputs[r] = out.f32() + r * out_features;
  }
  groups_.assign(
      1, {.matrix = matrix, .bias = VectorOf(args.bias, 0), .row_begin = 0, .row_end = rows}
  );
  RunProducts(inputs, outputs);
  CountWeightBytes(SourceOf(args.weight).data.bytes());
}

CpuOps::Rows CpuOps::PreparedInput(const WeightMatrix& matrix, TensorView input) {
  const int64_t columns = input.columns();
  const float* data = input.f32();
  if (!NeedsPreparation(matrix)) {
    return {.data = data, .stride = columns};
  }
  const int64_t stride = PreparedFloats(matrix);
  const auto prepared = prepared_.For<float>(input.rows() * stride);
  const int64_t grain = std::max<int64_t>(kFloatsPerCopyTask / stride, 1);
  pool_->ParallelFor(input.rows(), grain, [&](int64_t begin, int64_t end, int) {
    for (int64_t r = begin; r < end; ++r) {
      PrepareInput(matrix, data + r * columns, prepared + r * stride);
    }
  });
  return {.data = prepared, .stride = stride};
}

void CpuOps::AddProductTasks(int64_t group) {
  const ProductGroup& product = groups_[static_cast<size_t>(group)];
  const int64_t rows = std::min(product.row_end - product.row_begin, kRowsPerTask);
  const int64_t out_features = product.matrix.out_features;
  const int64_t step = ColumnsPerTask({
      .matrix = product.matrix,
      .rows = rows,
      .matrices = static_cast<int64_t>(groups_.size()),
      .threads = pool_->threads(),
  });
  for (int64_t column = 0; column < out_features; column += step) {
    for (int64_t row = product.row_begin; row < product.row_end; row += kRowsPerTask) {
      tasks_.push_back({
          .group = group,
          .row_begin = row,
          .row_end = std::min(row + kRowsPerTask, product.row_end),
          .columns = {column, std::min(column + step, out_features)},
      });
    }
  }
}

void CpuOps::RunProducts(const float* const* inputs, float* const* outputs) {
  tasks_.clear();
  for (size_t group = 0; group < groups_.size(); ++group) {
    AddProductTasks(static_cast<int64_t>(group));
  }
  const auto tasks = static_cast<int64_t>(tasks_.size());
  pool_->ParallelFor(tasks, 1, [&](int64_t begin, int64_t end, int worker) {
    float* panel = worker_scratch_[static_cast<size_t>(worker)].For<float>(kPanelFloats);
    for (int64_t t = begin; t < end; ++t) {
      const ProductTask& task = tasks_[static_cast<size_t>(t)];
      const ProductGroup& group = groups_[static_cast<size_t>(task.group)];
      const ProductArgs product = {
          .matrix = group.matrix,
          .bias = group.bias,
          .inputs = inputs + task.row_begin,
          .outputs = outputs + task.row_begin,
          .rows = task.row_end - task.row_begin,
          .panel = panel,
      };
      Product(product, task.columns);
    }
  });
}

}  // namespace switchyard
