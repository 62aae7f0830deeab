#include "kernels/check_shape.h"

#include "base/check.h"

namespace switchyard {

void CheckShape(
    const char* what, TensorView view, DType dtype, std::initializer_list<int64_t> shape
) {
  const TensorView expected(nullptr, dtype, shape);
  bool same = view.dtype() == dtype && view.rank() == expected.rank();
  for (int axis = 0; same && axis < expected.rank(); ++axis) {
    same = view.dim(axis) == expected.dim(axis);
  }
  CHECK(same) << what << " is " << view.ToString() << "; expected " << expected.ToString();
  CHECK(view.exists() || view.elements() == 0)
      << what << " " << view.ToString() << " has no memory";
}

void CheckMatrix(const char* what, TensorView view, int64_t rows, int64_t columns) {
  CHECK(view.dtype() == DType::kF32 && view.rows() == rows && view.columns() == columns)
      << what << " is " << view.ToString() << "; expected f32 with " << rows << " rows of "
      << columns;
  CHECK(view.exists() || view.elements() == 0)
      << what << " " << view.ToString() << " has no memory";
}

void CheckElements(const char* what, TensorView view, DType dtype, int64_t elements) {
  CHECK(view.dtype() == dtype && view.elements() == elements)
      << what << " is " << view.ToString() << "; expected " << elements << " of " << NameOf(dtype);
  CHECK(view.exists() || elements == 0) << what << " " << view.ToString() << " has no memory";
}

void CheckRole(const char* what, const Weight& weight, WeightRole role) {
  CHECK(weight.exists() && weight.role == role)
      << what << " has index " << weight.index << " and role " << static_cast<int>(weight.role)
      << "; expected role " << static_cast<int>(role);
}

void CheckOptionalVector(const char* what, const Weight& weight, int64_t dim) {
  if (!weight.exists()) {
    return;
  }
  CheckRole(what, weight, WeightRole::kVector);
  CHECK(weight.out_features == dim)
      << what << " has " << weight.out_features << " values; expected " << dim;
}

}  // namespace switchyard
