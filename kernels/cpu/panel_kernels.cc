#include "kernels/cpu/panel_kernels.h"

#include <algorithm>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/panel_kernels.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace switchyard {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using FloatTag = hn::ScalableTag<float>;
using Vector = hn::Vec<FloatTag>;

constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(FloatTag()));

// The register tile: with 32 registers 24 sums and 4 weights fit.
constexpr int64_t kTileVectors = HWY_TARGET <= HWY_AVX3 ? 4 : 2;
constexpr int64_t kTileRows = HWY_TARGET <= HWY_AVX3 ? 6 : 4;
constexpr int64_t kTileColumns = kTileVectors * kLanes;
static_assert(kPanelColumns % kTileColumns == 0);

// Some rows by kTileColumns columns from `column` of the panel on.
template <int64_t kRows>
HWY_NOINLINE void MultiplyTile(
    const ProductArgs& args, const Panel& panel, int64_t row, int64_t column
) {
  const int64_t first_output = panel.columns.begin + column;
  const int64_t width = std::min(kTileColumns, panel.columns.end - first_output);
  const auto bytes = static_cast<size_t>(width) * sizeof(float);
  // A narrow tile works on a copy, so that no load or store leaves the range.
  float narrow[kRows][kTileColumns] = {};
  const float* inputs[kRows];
  float* outputs[kRows];
  for (int64_t r = 0; r < kRows; ++r) {
    inputs[r] = args.inputs[row + r] + panel.feature;
    outputs[r] = args.outputs[row + r] + first_output;
    if (width < kTileColumns) {
      std::memcpy(narrow[r], outputs[r], panel.feature == 0 ? 0 : bytes);
      outputs[r] = narrow[r];
    }
  }

  Vector sums[kRows][kTileVectors];
  for (int64_t r = 0; r < kRows; ++r) {
    for (int64_t v = 0; v < kTileVectors; ++v) {
      sums[r][v] = panel.feature == 0 ? hn::Zero(FloatTag())
                                      : hn::LoadU(FloatTag(), outputs[r] + v * kLanes);
    }
  }
  const float* packed = args.panel + column;
  for (int64_t k = 0; k < panel.features; ++k, packed += kPanelColumns) {
    Vector weights[kTileVectors];
    for (int64_t v = 0; v < kTileVectors; ++v) {
      weights[v] = hn::LoadU(FloatTag(), packed + v * kLanes);
    }
    for (int64_t r = 0; r < kRows; ++r) {
      const Vector input = hn::Set(FloatTag(), inputs[r][k]);
      for (int64_t v = 0; v < kTileVectors; ++v) {
        sums[r][v] = hn::MulAdd(weights[v], input, sums[r][v]);
      }
    }
  }
  for (int64_t r = 0; r < kRows; ++r) {
    for (int64_t v = 0; v < kTileVectors; ++v) {
      hn::StoreU(sums[r][v], FloatTag(), outputs[r] + v * kLanes);
    }
    if (width < kTileColumns) {
      std::memcpy(args.outputs[row + r] + first_output, narrow[r], bytes);
    }
  }
}

}  // namespace

void MultiplyPanel(const ProductArgs& args, const Panel& panel) {
  const int64_t width = panel.columns.end - panel.columns.begin;
  for (int64_t column = 0; column < width; column += kTileColumns) {
    int64_t row = 0;
    for (; row + kTileRows <= args.rows; row += kTileRows) {
      MultiplyTile<kTileRows>(args, panel, row, column);
    }
    for (; row + 2 <= args.rows; row += 2) {
      MultiplyTile<2>(args, panel, row, column);
    }
    if (row < args.rows) {
      MultiplyTile<1>(args, panel, row, column);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace switchyard
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace switchyard {

HWY_EXPORT(MultiplyPanel);

void MultiplyPanel(const ProductArgs& args, const Panel& panel) {
  HWY_DYNAMIC_DISPATCH(MultiplyPanel)(args, panel);
}

}  // namespace switchyard
#endif
