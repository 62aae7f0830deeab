#include <numbers>

#include "kernels/check_shape.h"
#include "kernels/cuda/cuda_ops.h"
#include "kernels/cuda/view.h"

namespace switchyard {
namespace {

constexpr int kThreads = 256;

__device__ float Activation(ActivationKind kind, float x) {
  switch (kind) {
    case ActivationKind::kIdentity:
      return x;
    case ActivationKind::kRelu:
      return x < 0 ? 0 : x;  // NaN stays NaN
    case ActivationKind::kSilu:
      return x / (1.0F + expf(-x));
    case ActivationKind::kGelu:
      return 0.5F * x * (1.0F + erff(x / std::numbers::sqrt2_v<float>));
    case ActivationKind::kGeluTanh: {
      const float scale = std::numbers::sqrt2_v<float> * std::numbers::inv_sqrtpi_v<float>;
      return 0.5F * x * (1.0F + tanhf(scale * (x + 0.044715F * x * x * x)));
    }
    case ActivationKind::kSigmoid:
      return 1.0F / (1.0F + expf(-x));
  }
  return x;
}

}  // namespace

__global__ void ActivateKernel(
    ActivateArgs args, Global<const float> input, Global<float> out, int64_t dim, int64_t count
) {
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= count) {
    return;
  }
  if (!args.gated) {
    out[i] = Activation(args.kind, input[i]);
    return;
  }
  const int64_t first = i / dim * 2 * dim + i % dim;
  out[i] = Activation(args.kind, input[first]) * input[first + dim];
}

void CudaOps::Activate(const ActivateArgs& args, TensorView input, TensorView out) {
  const int64_t rows = out.rows();
  const int64_t dim = out.columns();
  CheckMatrix("out", out, rows, dim);
  CheckMatrix("input", input, rows, args.gated ? 2 * dim : dim);
  if (!status_.ok() || out.elements() == 0) {
    return;
  }
  Launch(
      ActivateKernel,
      dim3{GridSize(DivideUp(out.elements(), kThreads)), 1, 1},
      dim3{kThreads, 1, 1},
      0,
      stream_->get(),
      args,
      ConstFloats(input),
      Floats(out),
      dim,
      out.elements()
  );
  NoteLaunch("Activate");
}

}  // namespace switchyard
