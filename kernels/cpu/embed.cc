#include "base/check.h"
#include "kernels/check_shape.h"
#include "kernels/cpu/cpu_ops.h"
#include "kernels/float16.h"

namespace switchyard {
namespace {

constexpr int64_t kTokensPerTask = 8;

}  // namespace

void CpuOps::Embed(const Weight& table, TensorView token_ids, float scale, TensorView out) {
  CheckRole("table", table, WeightRole::kEmbedding);
  const int64_t tokens = token_ids.elements();
  const int64_t dim = table.out_features;
  CheckMatrix("out", out, tokens, dim);
  const int32_t* ids = token_ids.i32();
  const TensorView data = SourceOf(table).data;
  pool_->ParallelFor(tokens, kTokensPerTask, [&](int64_t begin, int64_t end, int) {
    for (int64_t t = begin; t < end; ++t) {
      CHECK(ids[t] >= 0 && ids[t] < table.in_features)
          << "token id " << ids[t] << " at " << t << "; the vocabulary has " << table.in_features;
      float* row = out.f32() + t * dim;
      Widen(data, {.begin = ids[t] * dim, .count = dim}, row);
      for (int64_t d = 0; d < dim; ++d) {
        row[d] *= scale;
      }
    }
  });
  CountWeightBytes(tokens * dim * BytesOf(data.dtype()));
}

}  // namespace switchyard
