#include "tests/gpu/anchors.h"

#include <memory>
#include <utility>

#include "base/log.h"
#include "tests/benchmarks/timing.h"
#include "tests/gpu/cublas_rate.h"
#include "tests/gpu/random_tensors.h"

namespace switchyard {
namespace {

constexpr int kCopies = 8;  // queued between two waits

// Of the backend's own product, which multiplies each weight by the three parts of an activation.
StatusOr<double> OwnRate(Ops& ops, const RandomPool& pool, int64_t size, int repeats) {
  const Weight weight = ops.AddWeight(
      {.role = WeightRole::kDense,
       .layout = WeightLayout::kOutIn,
       .data = TensorView(pool.Part(0), DType::kBF16, {size, size}),
       .name = "bench",
       .place = TensorPlace::kBackend}
  );
  const int64_t bytes = size * size * BytesOf(DType::kF32);
  ASSIGN_OR_RETURN(const std::unique_ptr<Buffer> input, ops.Allocate(bytes));
  ASSIGN_OR_RETURN(const std::unique_ptr<Buffer> out, ops.Allocate(bytes));
  const TensorView input_view(input->data(), DType::kF32, {size, size});
  const TensorView out_view(out->data(), DType::kF32, {size, size});
  Status status;
  const double seconds = MedianSeconds(repeats, [&] {
    ops.MatMul({.weight = weight, .bias = {}}, input_view, out_view);
    status = ops.Finish();
  });
  RETURN_IF_ERROR(status);
  const auto edge = static_cast<double>(size);
  return 2 * edge * edge * edge / seconds;
}

}  // namespace

StatusOr<double> CopyBandwidth(Ops& ops, int64_t bytes, int repeats) {
  ASSIGN_OR_RETURN(const std::unique_ptr<Buffer> from, ops.Allocate(bytes));
  ASSIGN_OR_RETURN(const std::unique_ptr<Buffer> to, ops.Allocate(bytes));
  Status status;
  const double seconds = MedianSeconds(repeats, [&] {
    for (int copy = 0; copy < kCopies; ++copy) {
      ops.Copy(from->data(), to->data(), bytes);
    }
    status = ops.Finish();
  });
  RETURN_IF_ERROR(status);
  return 2.0 * kCopies * static_cast<double>(bytes) / seconds;
}

StatusOr<MatrixRate> MeasureMatrixRate(Ops& ops, int64_t size, int repeats) {
  ASSIGN_OR_RETURN(const RandomPool pool, RandomPool::Create(ops, 3 * size * size, 1.0F));
  const StatusOr<double> cublas = CublasRate(pool.Part(0), size, repeats);
  if (cublas.ok()) {
    return MatrixRate{.flops_per_second = *cublas, .source = "cublas"};
  }
  LogWarning("event=matrix_rate_without_cublas reason=\"{}\"", MessageOf(cublas.status()));
  ASSIGN_OR_RETURN(const double own, OwnRate(ops, pool, size, repeats));
  return MatrixRate{.flops_per_second = own, .source = "switchyard"};
}

}  // namespace switchyard
