#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "kernels/check_shape.h"
#include "kernels/cpu/cpu_ops.h"

namespace switchyard {
namespace {

constexpr int64_t kPairsPerTask = 4096;

}  // namespace

void CpuOps::FillRopeTable(const RopeArgs& args) {
  const int32_t* positions = args.positions.i32();
  const int64_t tokens = args.positions.elements();
  const int64_t half = args.rotary_dims / 2;
  // Queries and keys of every layer of a step share their positions.
  if (rope_dims_ == args.rotary_dims && rope_base_ == args.base &&
      std::equal(positions, positions + tokens, rope_positions_.begin(), rope_positions_.end())) {
    return;
  }
  rope_positions_.assign(positions, positions + tokens);
  rope_dims_ = args.rotary_dims;
  rope_base_ = args.base;
  rope_table_.resize(static_cast<size_t>(tokens * half * 2));
  for (int64_t i = 0; i < half; ++i) {
    const float exponent = static_cast<float>(2 * i) / static_cast<float>(args.rotary_dims);
    const float frequency = 1.0F / std::pow(args.base, exponent);
    for (int64_t t = 0; t < tokens; ++t) {
      const float angle = static_cast<float>(positions[t]) * frequency;
      float* entry = rope_table_.data() + (t * half + i) * 2;
      entry[0] = std::cos(angle);
      entry[1] = std::sin(angle);
    }
  }
}

void CpuOps::Rope(const RopeArgs& args, TensorView heads) {
  CHECK(heads.rank() == 3) << "heads are " << heads.ToString();
  const int64_t tokens = heads.dim(0);
  const int64_t heads_per_token = heads.dim(1);
  const int64_t head_dim = heads.dim(2);
  const int64_t half = args.rotary_dims / 2;
  CHECK(args.rotary_dims >= 0 && args.rotary_dims % 2 == 0 && args.rotary_dims <= head_dim)
      << "rotary_dims=" << args.rotary_dims << " heads " << heads.ToString();
  CheckElements("positions", args.positions, DType::kI32, tokens);
  FillRopeTable(args);

  float* data = heads.f32();
  const int64_t pairs_per_token = std::max<int64_t>(heads_per_token * half, 1);
  const int64_t grain = std::max<int64_t>(kPairsPerTask / pairs_per_token, 1);
  pool_->ParallelFor(tokens, grain, [&](int64_t begin, int64_t end, int) {
    for (int64_t row = begin * heads_per_token; row < end * heads_per_token; ++row) {
      const float* entry = rope_table_.data() + row / heads_per_token * half * 2;
      float* head = data + row * head_dim;
      for (int64_t i = 0; i < half; ++i, entry += 2) {
        const float first = head[i];
        const float second = head[i + half];
        head[i] = first * entry[0] - second * entry[1];
        head[i + half] = second * entry[0] + first * entry[1];
      }
    }
  });
}

}  // namespace switchyard
