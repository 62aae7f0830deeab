#include "kernels/check_shape.h"
#include "kernels/cpu/cpu_ops.h"

namespace switchyard {
namespace {

constexpr int64_t kFloatsPerTask = 16384;

}  // namespace

void CpuOps::Add(TensorView x, TensorView update) {
  CheckMatrix("update", update, x.rows(), x.columns());
  float* sums = x.f32();
  const float* addends = update.f32();
  pool_->ParallelFor(x.elements(), kFloatsPerTask, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) {
      sums[i] += addends[i];
    }
  });
}

}  // namespace switchyard
