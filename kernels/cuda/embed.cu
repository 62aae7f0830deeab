#include "base/check.h"
#include "kernels/check_shape.h"
#include "kernels/cuda/cuda_ops.h"
#include "kernels/cuda/view.h"

namespace switchyard {

struct EmbeddedBf16 {
  uint16_t bits;
};
struct EmbeddedF16 {
  uint16_t bits;
};

namespace {

constexpr int kThreads = 128;

__device__ __forceinline__ float Widen(float value) {
  return value;
}

__device__ __forceinline__ float Widen(EmbeddedBf16 value) {
  return FloatOfBits(uint32_t{value.bits} << 16);
}
__device__ __forceinline__ float Widen(EmbeddedF16 value) {
  return WidenF16(value.bits);
}

}  // namespace

template <typename Element>
__global__ void EmbedKernel(
    Global<const Element> table,
    Global<const int32_t> ids,
    Global<float> out,
    int64_t dim,
    float scale
) {
  const int64_t token = blockIdx.x;
  const int64_t id = ids[token];
  for (int64_t d = threadIdx.x; d < dim; d += kThreads) {
    out[token * dim + d] = Widen(table[id * dim + d]) * scale;
  }
}

void CudaOps::Embed(const Weight& table, TensorView token_ids, float scale, TensorView out) {
  CheckRole("table", table, WeightRole::kEmbedding);
  const int64_t tokens = token_ids.elements();
  const int64_t dim = table.out_features;
  CheckMatrix("out", out, tokens, dim);
  if (!status_.ok() || out.elements() == 0) {
    return;
  }
  const StoredWeight& stored = StoredOf(table);
  const auto launch = [&](auto element) {
    using Element = decltype(element);
    const Global<const Element> elements(
        static_cast<const Element*>(stored.memory->data()), table.in_features * dim
    );
    Launch(
        EmbedKernel<Element>,
        dim3{GridSize(tokens), 1, 1},
        dim3{kThreads, 1, 1},
        0,
        stream_->get(),
        elements,
        ConstInts(token_ids),
        Floats(out),
        dim,
        scale
    );
  };
  switch (stored.dtype) {
    case DType::kF32:
      launch(float());
      break;
    case DType::kBF16:
      launch(EmbeddedBf16());
      break;
    case DType::kF16:
      launch(EmbeddedF16());
      break;
    default:
      CHECK(false) << "an embedding of " << NameOf(stored.dtype);
  }
  NoteLaunch("Embed");
  host_weight_bytes_ += tokens * dim * BytesOf(stored.dtype);
}

}  // namespace switchyard
