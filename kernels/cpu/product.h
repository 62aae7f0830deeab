#pragma once

#include <cstdint>

#include "kernels/tensor.h"
#include "kernels/weight.h"

// The one matrix product of this backend, rows times one weight matrix read in its stored dtype and
// layout. Every element is summed along in_features in an order that only in_features, the layout,
// the dtype and the instruction set fix: see out_in_kernels.h and in_out_kernels.h.

namespace switchyard {

struct WeightMatrix {
  const void* data = nullptr;
  DType dtype = DType::kF32;
  WeightLayout layout = WeightLayout::kOutIn;
  int64_t in_features = 0;
  int64_t out_features = 0;
};

// outputs[r][o] = sum_i inputs[r][i] * matrix(o, i) + bias[o], for the rows and a range of o.
struct ProductArgs {
  WeightMatrix matrix;
  const float* bias = nullptr;           // [out_features]; may be null
  const float* const* inputs = nullptr;  // [rows]; prepared if NeedsPreparation(matrix)
  float* const* outputs = nullptr;       // [rows], each [out_features]; distinct
  int64_t rows = 0;
  float* panel = nullptr;  // kPanelFloats of scratch, one for each thread
};
struct Columns {
  int64_t begin = 0;
  int64_t end = 0;
};

inline constexpr int64_t kPanelFloats = int64_t{128} * 64;

void Product(const ProductArgs& args, Columns columns);

// Whether inputs must be rearranged for this matrix, and how many floats a rearranged row takes.
bool NeedsPreparation(const WeightMatrix& matrix);
int64_t PreparedFloats(const WeightMatrix& matrix);
void PrepareInput(const WeightMatrix& matrix, const float* input, float* prepared);

// One of several matrices of about the same size that `threads` multiply at the same time.
struct ProductSplit {
  WeightMatrix matrix;
  int64_t rows = 0;
  int64_t matrices = 1;
  int threads = 1;
};
// How many columns of the matrix one task should take.
int64_t ColumnsPerTask(const ProductSplit& split);

}  // namespace switchyard
