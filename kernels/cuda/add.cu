#include "kernels/check_shape.h"
#include "kernels/cuda/cuda_ops.h"
#include "kernels/cuda/view.h"

namespace switchyard {
namespace {

constexpr int kThreads = 256;

}  // namespace

__global__ void AddKernel(Global<float> x, Global<const float> update, int64_t count) {
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i < count) {
    x[i] += update[i];
  }
}

void CudaOps::Add(TensorView x, TensorView update) {
  CheckMatrix("update", update, x.rows(), x.columns());
  if (!status_.ok() || x.elements() == 0) {
    return;
  }
  Launch(
      AddKernel,
      dim3{GridSize(DivideUp(x.elements(), kThreads)), 1, 1},
      dim3{kThreads, 1, 1},
      0,
      stream_->get(),
      Floats(x),
      ConstFloats(update),
      x.elements()
  );
  NoteLaunch("Add");
}

}  // namespace switchyard
