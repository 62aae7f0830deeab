#include "kernels/cpu/product.h"

#include <algorithm>

#include "base/check.h"
#include "kernels/cpu/in_out_kernels.h"
#include "kernels/cpu/out_in_kernels.h"
#include "kernels/cpu/panel_kernels.h"

namespace switchyard {
namespace {

// Multiplications of one task: long against the cost of handing it out (about 0.1 us), short
// enough that the last tasks of a loop end together.
constexpr int64_t kProductsPerTask = int64_t{128} * 1024;
constexpr int64_t kLeastProductsPerTask = int64_t{16} * 1024;
constexpr int64_t kTasksPerThread = 4;
// A multiple of every register tile's width.
constexpr int64_t kOutInColumns = 12;
// Reading [in, out] matrices row by row needs runs of some length for the memory to be fast; what
// streams takes as long ones as the threads allow.
constexpr int64_t kStreamRunBytes = 4096;
constexpr int64_t kPackRunBytes = 512;

int64_t RoundedUp(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

// The fewest parts of each matrix with which all threads end at about the same time.
int64_t EvenParts(const ProductSplit& split) {
  int64_t parts = 1;
  while (parts * split.matrices % split.threads != 0 &&
         parts * split.matrices < kTasksPerThread * split.threads) {
    ++parts;
  }
  return parts;
}

}  // namespace

void Product(const ProductArgs& args, Columns columns) {
  CHECK(args.matrix.in_features > 0) << "a product over nothing";
  if (args.rows == 0 || columns.begin >= columns.end) {
    return;
  }
  if (args.matrix.layout == WeightLayout::kOutIn) {
    OutInProduct(args, columns);
  } else {
    InOutProduct(args, columns);
  }
  if (args.bias == nullptr) {
    return;
  }
  for (int64_t r = 0; r < args.rows; ++r) {
    float* output = args.outputs[r];
    for (int64_t o = columns.begin; o < columns.end; ++o) {
      output[o] += args.bias[o];
    }
  }
}

bool NeedsPreparation(const WeightMatrix& matrix) {
  return matrix.layout == WeightLayout::kOutIn &&
         (matrix.dtype == DType::kBF16 || matrix.in_features % kOutInPadding != 0);
}

int64_t PreparedFloats(const WeightMatrix& matrix) {
  return RoundedUp(matrix.in_features, kOutInPadding);
}

void PrepareInput(const WeightMatrix& matrix, const float* input, float* prepared) {
  PrepareOutInInput(matrix, input, prepared);
}

int64_t ColumnsPerTask(const ProductSplit& split) {
  const WeightMatrix& matrix = split.matrix;
  const int64_t products_per_column = std::max<int64_t>(matrix.in_features * split.rows, 1);
  const int64_t tasks = split.threads == 1 ? 1 : kTasksPerThread * split.threads;
  const int64_t fair_share = matrix.out_features / tasks;
  const int64_t least = kLeastProductsPerTask / products_per_column;
  int64_t columns = std::max(std::min(kProductsPerTask / products_per_column, fair_share), least);
  if (matrix.layout == WeightLayout::kOutIn) {
    return RoundedUp(std::max<int64_t>(columns, 1), kOutInColumns);
  }
  const bool streams = split.rows <= kInOutStreamRows;
  const int64_t run = (streams ? kStreamRunBytes : kPackRunBytes) / BytesOf(matrix.dtype);
  const int64_t longest = streams ? matrix.out_features / EvenParts(split) : fair_share;
  columns = std::max(columns, std::min(run, longest));
  return RoundedUp(std::max<int64_t>(columns, 1), kPanelColumns);
}

}  // namespace switchyard
