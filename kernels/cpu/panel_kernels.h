#pragma once

#include "kernels/cpu/product.h"

namespace switchyard {

// A panel: a block of an [in, out] matrix as float32, [features, kPanelColumns], zeros where it is
// narrower than that. Small enough for the first cache level.
inline constexpr int64_t kPanelColumns = 64;
inline constexpr int64_t kPanelFeatures = 128;
static_assert(kPanelColumns * kPanelFeatures <= kPanelFloats);

struct Panel {
  int64_t feature = 0;
  int64_t features = 0;
  Columns columns;  // at most kPanelColumns
};

// Adds the products of all rows with args.panel to the columns of the outputs, which the panel of
// feature 0 starts. In_features ascending, one fused multiply-add each.
void MultiplyPanel(const ProductArgs& args, const Panel& panel);

}  // namespace switchyard
