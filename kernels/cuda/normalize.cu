#include <utility>

#include "base/check.h"
#include "kernels/check_shape.h"
#include "kernels/cuda/block.h"
#include "kernels/cuda/cuda_ops.h"
#include "kernels/cuda/view.h"

namespace switchyard {

struct NormArgs {
  Global<const float> input;
  Global<const int32_t> rows;
  Global<const float> weight;
  Global<const float> bias;
  Global<float> out;
  int64_t dim = 0;
  float epsilon = 0;
  NormKind kind = NormKind::kRms;
};

namespace {

constexpr int kMaxThreads = 256;
constexpr int64_t kElementsPerThread = 4;

// By the dimension alone, so that a row's sums never depend on the batch.
int ThreadsFor(int64_t dim) {
  int threads = kWarpLanes;
  while (threads < kMaxThreads && threads * kElementsPerThread < dim) {
    threads *= 2;
  }
  return threads;
}

}  // namespace

__global__ void NormalizeKernel(NormArgs args) {
  SHARED_ARRAY(float, scratch, kMaxThreads / kWarpLanes);
  const int64_t row = blockIdx.x;
  const int64_t input_row = args.rows.exists() ? args.rows[row] : row;
  const Global<const float> x = args.input.From(input_row * args.dim);
  const Global<float> y = args.out.From(row * args.dim);
  const int64_t step = blockDim.x;
  if (args.kind == NormKind::kNone) {
    for (int64_t d = threadIdx.x; d < args.dim; d += step) {
      y[d] = x[d];
    }
    return;
  }
  const auto dim = static_cast<float>(args.dim);
  float center = 0;
  if (args.kind == NormKind::kLayer) {
    float sum = 0;
    for (int64_t d = threadIdx.x; d < args.dim; d += step) {
      sum += x[d];
    }
    center = BlockSum<float>(scratch, sum) / dim;
  }
  float squares = 0;
  for (int64_t d = threadIdx.x; d < args.dim; d += step) {
    const float centered = x[d] - center;
    squares = MultiplyAdd(centered, centered, squares);
  }
  const float inverse = 1.0F / sqrtf(BlockSum<float>(scratch, squares) / dim + args.epsilon);
  for (int64_t d = threadIdx.x; d < args.dim; d += step) {
    const float bias = args.bias.exists() ? args.bias[d] : 0.0F;
    y[d] = (x[d] - center) * inverse * args.weight[d] + bias;
  }
}

void CudaOps::Normalize(const NormalizeArgs& args, TensorView input, TensorView out) {
  const int64_t dim = input.columns();
  const int64_t out_rows = args.rows.exists() ? args.rows.elements() : input.rows();
  CheckMatrix("input", input, input.rows(), dim);
  CheckMatrix("out", out, out_rows, dim);
  if (args.kind != NormKind::kNone) {
    CheckRole("weight", args.weight, WeightRole::kVector);
    CheckOptionalVector("weight", args.weight, dim);
    CheckOptionalVector("bias", args.bias, dim);
    CHECK(args.kind == NormKind::kLayer || !args.bias.exists())
        << "a root mean square norm has no bias";
  }
  if (!status_.ok() || out.elements() == 0) {
    return;
  }
  const bool has_weight = args.kind != NormKind::kNone;
  const NormArgs norm = {
      ConstFloats(input),
      args.rows.exists() ? ConstInts(args.rows) : Global<const int32_t>(),
      has_weight ? VectorOf(args.weight) : Global<const float>(),
      has_weight ? VectorOf(args.bias) : Global<const float>(),
      Floats(out),
      dim,
      args.epsilon,
      args.kind};
  Launch(
      NormalizeKernel,
      dim3{GridSize(out_rows), 1, 1},
      dim3{static_cast<unsigned>(ThreadsFor(dim)), 1, 1},
      0,
      stream_->get(),
      norm
  );
  NoteLaunch("Normalize");
  if (has_weight) {
    CountWeightBytes(args.weight);
  }
}

}  // namespace switchyard
