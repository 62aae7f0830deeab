#include "base/check.h"
#include "kernels/check_shape.h"
#include "kernels/cuda/cuda_ops.h"
#include "kernels/cuda/view.h"

namespace switchyard {
namespace {

constexpr int kThreads = 128;

}  // namespace

__global__ void StoreRowsKernel(
    Global<const float> rows, Global<const int32_t> slots, Global<float> cache, int64_t columns
) {
  const int64_t token = blockIdx.x;
  const int64_t slot = slots[token];
  for (int64_t c = threadIdx.x; c < columns; c += kThreads) {
    cache[slot * columns + c] = rows[token * columns + c];
  }
}

namespace {

void StoreRows(
    const char* what, TensorView rows, TensorView slots, TensorView cache, cudaStream_t stream
) {
  CHECK(cache.rank() == 4) << what << " cache is " << cache.ToString();
  const int64_t columns = cache.dim(2) * cache.dim(3);
  CheckElements(what, rows, DType::kF32, slots.elements() * columns);
  if (rows.elements() == 0) {
    return;
  }
  Launch(
      StoreRowsKernel,
      dim3{GridSize(slots.elements()), 1, 1},
      dim3{kThreads, 1, 1},
      0,
      stream,
      ConstFloats(rows),
      ConstInts(slots),
      Floats(cache),
      columns
  );
}

}  // namespace

void CudaOps::StoreKv(const StoreKvArgs& args) {
  if (!status_.ok()) {
    return;
  }
  StoreRows("key", args.key, args.slots, args.key_cache, stream_->get());
  StoreRows("value", args.value, args.slots, args.value_cache, stream_->get());
  NoteLaunch("StoreKv");
}

}  // namespace switchyard
