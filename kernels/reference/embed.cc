#include "base/check.h"
#include "kernels/check_shape.h"
#include "kernels/float16.h"
#include "kernels/reference/reference_ops.h"

namespace switchyard {

void ReferenceOps::Embed(const Weight& table, TensorView token_ids, float scale, TensorView out) {
  CheckRole("table", table, WeightRole::kEmbedding);
  const int64_t tokens = token_ids.elements();
  const int64_t dim = table.out_features;
  CheckMatrix("out", out, tokens, dim);
  const int32_t* ids = token_ids.i32();
  const TensorView data = SourceOf(table).data;
  for (int64_t t = 0; t < tokens; ++t) {
    CHECK(ids[t] >= 0 && ids[t] < table.in_features)
        << "token id " << ids[t] << " at " << t << "; the vocabulary has " << table.in_features;
    float* out_row = out.f32() + t * dim;
    Widen(data, {.begin = ids[t] * dim, .count = dim}, out_row);
    for (int64_t d = 0; d < dim; ++d) {
      out_row[d] *= scale;
    }
  }
  CountWeightBytes(tokens * dim * BytesOf(data.dtype()));
}

}  // namespace switchyard
