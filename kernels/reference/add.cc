#include "kernels/check_shape.h"
#include "kernels/reference/reference_ops.h"

namespace switchyard {

void ReferenceOps::Add(TensorView x, TensorView update) {
  CheckMatrix("update", update, x.rows(), x.columns());
  for (int64_t i = 0; i < x.elements(); ++i) {
    x.f32()[i] += update.f32()[i];
  }
}

}  // namespace switchyard
