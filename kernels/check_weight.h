#pragma once

#include "kernels/weight.h"

namespace switchyard {

// CHECKs dtype and rank of a weight on its way to a backend; its logical sizes, without an index.
Weight CheckedWeight(const WeightSource& source);

}  // namespace switchyard
