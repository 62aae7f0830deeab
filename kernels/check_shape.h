#pragma once

#include <cstdint>
#include <initializer_list>

#include "kernels/tensor.h"
#include "kernels/weight.h"

// What the verbs CHECK on entry: a wrong shape or dtype is our bug. `what` names the argument in
// the message.

namespace switchyard {

void CheckShape(
    const char* what, TensorView view, DType dtype, std::initializer_list<int64_t> shape
);
// For arguments whose leading dimensions may be split in any way.
void CheckMatrix(const char* what, TensorView view, int64_t rows, int64_t columns);
void CheckElements(const char* what, TensorView view, DType dtype, int64_t elements);

void CheckRole(const char* what, const Weight& weight, WeightRole role);
// A vector of `dim`; passes when it is absent.
void CheckOptionalVector(const char* what, const Weight& weight, int64_t dim);

}  // namespace switchyard
