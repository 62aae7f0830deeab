#pragma once

#include <cstdint>

#include "kernels/ops.h"

namespace switchyard {

// How many assignments in a row share one row of the input or output.
int64_t AssignmentsOfOneRow(RowOf row_of, TensorView expert_ids);

// What every backend CHECKs on entry to ExpertMatMul: shapes, dtypes and roles. Reads no tensor.
void CheckExpertMatMul(const ExpertMatMulArgs& args, TensorView out);

}  // namespace switchyard
