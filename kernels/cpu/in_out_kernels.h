#pragma once

#include "kernels/cpu/product.h"

// Products with matrices stored [in, out], where each input feature is one run of memory.
//
// Order of a sum: in_features ascending, one fused multiply-add each, in one lane of its own. So
// the partial sums can rest in the output between blocks of input features without changing a bit,
// and few rows (streaming) and many (packed panels) agree.

namespace switchyard {

void InOutProduct(const ProductArgs& args, Columns columns);

// Up to so many rows the matrix streams; beyond, its panels are widened once for all rows.
inline constexpr int64_t kInOutStreamRows = 16;

}  // namespace switchyard
