#include <cmath>

#include "base/check.h"
#include "kernels/check_shape.h"
#include "kernels/reference/reference_ops.h"

namespace switchyard {

void ReferenceOps::Rope(const RopeArgs& args, TensorView heads) {
  CHECK(heads.rank() == 3) << "heads are " << heads.ToString();
  const int64_t tokens = heads.dim(0);
  const int64_t head_dim = heads.dim(2);
  const int64_t half = args.rotary_dims / 2;
  CHECK(args.rotary_dims >= 0 && args.rotary_dims % 2 == 0 && args.rotary_dims <= head_dim)
      << "rotary_dims=" << args.rotary_dims << " heads " << heads.ToString();
  CheckElements("positions", args.positions, DType::kI32, tokens);

  for (int64_t t = 0; t < tokens; ++t) {
    const auto position = static_cast<float>(args.positions.i32()[t]);
    for (int64_t i = 0; i < half; ++i) {
      const float exponent = static_cast<float>(2 * i) / static_cast<float>(args.rotary_dims);
      const float angle = position * (1.0F / std::pow(args.base, exponent));
      const float cosine = std::cos(angle);
      const float sine = std::sin(angle);
      for (int64_t h = 0; h < heads.dim(1); ++h) {
        float* head = heads.f32() + (t * heads.dim(1) + h) * head_dim;
        const float first = head[i];
        const float second = head[i + half];
        head[i] = first * cosine - second * sine;
        head[i + half] = second * cosine + first * sine;
      }
    }
  }
}

}  // namespace switchyard
