#include <algorithm>

#include "base/check.h"
#include "kernels/check_shape.h"
#include "kernels/reference/reference_ops.h"

namespace switchyard {
namespace {

void StoreRows(const char* what, TensorView rows, TensorView slots, TensorView cache) {
  CHECK(cache.rank() == 4) << what << " cache is " << cache.ToString();
  const int64_t tokens = slots.elements();
  const int64_t row_elements = cache.dim(2) * cache.dim(3);
  const int64_t slot_count = cache.dim(0) * cache.dim(1);
  CheckElements(what, rows, DType::kF32, tokens * row_elements);
  for (int64_t t = 0; t < tokens; ++t) {
    const int64_t slot = slots.i32()[t];
    CHECK(slot >= 0 && slot < slot_count) << what << " slot " << slot << " of " << slot_count;
    std::copy_n(rows.f32() + t * row_elements, row_elements, cache.f32() + slot * row_elements);
  }
}

}  // namespace

void ReferenceOps::StoreKv(const StoreKvArgs& args) {
  StoreRows("key", args.key, args.slots, args.key_cache);
  StoreRows("value", args.value, args.slots, args.value_cache);
}

}  // namespace switchyard
