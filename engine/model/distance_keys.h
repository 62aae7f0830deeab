#pragma once

#include <cstdint>
#include <memory>

#include "base/status.h"
#include "kernels/ops.h"

namespace switchyard {

// The keys of Transformer-XL positions as the SwitchHead and MoA training code has them: one vector
// for each distance between query and key, the same for every token, made once at load:
//   row d = W pe(-d),  pe(r)[2c] = sin(r w_c),  pe(r)[2c + 1] = cos(r w_c),  w_c = 10000^(-2c /
//   model_dim).
// The argument is key position minus query position, so it is negative: the sines have the opposite
// sign of the textbook's.
class DistanceKeys {
 public:
  // `projection`: dense, model_dim -> heads * key_dim. RESOURCE_EXHAUSTED when the table does not
  // fit.
  static StatusOr<std::unique_ptr<DistanceKeys>> Create(
      Ops& ops, const Weight& projection, int64_t heads, int64_t max_distance
  );

  // [max_distance, heads, key_dim], in the backend's memory.
  TensorView table() const { return table_; }

 private:
  std::unique_ptr<Buffer> memory_;
  TensorView table_;
};

}  // namespace switchyard
