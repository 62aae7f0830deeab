#include "kernels/cpu/in_out_kernels.h"

#include <algorithm>

#include "base/check.h"
#include "kernels/cpu/panel_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/in_out_kernels.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h, which compiles all that follows once for each instruction set.
#include "hwy/cache_control.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace switchyard {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using FloatTag = hn::ScalableTag<float>;
using OneTag = hn::CappedTag<float, 1>;
using Vector = hn::Vec<FloatTag>;

constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(FloatTag()));

// Few rows read the matrix straight from memory, a block of input features at a time that stays in
// the second cache for all of them, so many rows and features at once in registers.
constexpr int64_t kStreamFeatures = 64;
constexpr int64_t kStreamRows = 4;
template <int64_t kRows>
constexpr int64_t kStreamDepth = kRows <= 2 ? 8 : 4;
// The hardware does not foresee the jump from one input feature to the next, so each read asks for
// the weights of so many features later.
constexpr int64_t kFeaturesAhead = 16;

struct F32Weights {
  using Element = float;
  template <class D>
  static HWY_INLINE hn::Vec<D> Widened(D d, const Element* weights) {
    return hn::LoadU(d, weights);
  }
};

struct F16Weights {
  using Element = hwy::float16_t;
  template <class D>
  static HWY_INLINE hn::Vec<D> Widened(D d, const Element* weights) {
    return hn::PromoteTo(d, hn::LoadU(hn::Rebind<Element, D>(), weights));
  }
};

struct BF16Weights {
  using Element = uint16_t;
  template <class D>
  static HWY_INLINE hn::Vec<D> Widened(D d, const Element* weights) {
    const hn::RebindToUnsigned<D> wide;
    const auto bits = hn::PromoteTo(wide, hn::LoadU(hn::Rebind<Element, D>(), weights));
    return hn::BitCast(d, hn::ShiftLeft<16>(bits));
  }
};

// Adds feature k of the inputs, whose weights for these columns begin at `weights`.
template <class Weights, int64_t kRows, int64_t kDepth, int64_t kWide, class D>
HWY_INLINE void AddFeature(
    D d,
    const typename Weights::Element* weights,
    const hn::Vec<D> (&inputs)[kRows][kDepth],
    int64_t k,
    hn::Vec<D> (&sums)[kRows][kWide]
) {
  for (int64_t v = 0; v < kWide; ++v) {
    const auto widened = Weights::Widened(d, weights + v * static_cast<int64_t>(hn::Lanes(d)));
    for (int64_t r = 0; r < kRows; ++r) {
      sums[r][v] = hn::MulAdd(widened, inputs[r][k], sums[r][v]);
    }
  }
}

// Adds kDepth input features from `feature` on to the columns, which rest in the outputs, kWide
// vectors at a time.
template <class Weights, int64_t kRows, int64_t kDepth, int64_t kWide, class D>
HWY_INLINE void StreamColumns(
    D d, const ProductArgs& args, int64_t row, int64_t feature, Columns columns
) {
  using Element = typename Weights::Element;
  const int64_t stride = args.matrix.out_features;
  const Element* weights = static_cast<const Element*>(args.matrix.data) + feature * stride;
  const bool first = feature == 0;
  hn::Vec<D> inputs[kRows][kDepth];
  for (int64_t r = 0; r < kRows; ++r) {
    for (int64_t k = 0; k < kDepth; ++k) {
      inputs[r][k] = hn::Set(d, args.inputs[row + r][feature + k]);
    }
  }
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t column = columns.begin; column < columns.end; column += kWide * lanes) {
    hn::Vec<D> sums[kRows][kWide];
    for (int64_t r = 0; r < kRows; ++r) {
      for (int64_t v = 0; v < kWide; ++v) {
        sums[r][v] = first ? hn::Zero(d) : hn::LoadU(d, args.outputs[row + r] + column + v * lanes);
      }
    }
    for (int64_t k = 0; k < kDepth; ++k) {
      hwy::Prefetch(weights + (k + kFeaturesAhead) * stride + column);
      AddFeature<Weights>(d, weights + k * stride + column, inputs, k, sums);
    }
    for (int64_t r = 0; r < kRows; ++r) {
      for (int64_t v = 0; v < kWide; ++v) {
        hn::StoreU(sums[r][v], d, args.outputs[row + r] + column + v * lanes);
      }
    }
  }
}

template <class Weights, int64_t kRows, int64_t kDepth>
HWY_NOINLINE void StreamFeatures(
    const ProductArgs& args, int64_t row, int64_t feature, Columns columns
) {
  // So many vectors that one prefetch covers what they read.
  constexpr int64_t kWide = sizeof(typename Weights::Element) == sizeof(float) ? 1 : 2;
  constexpr int64_t kStep = kWide * kLanes;
  const int64_t whole_end = columns.begin + (columns.end - columns.begin) / kStep * kStep;
  StreamColumns<Weights, kRows, kDepth, kWide>(
      FloatTag(), args, row, feature, {columns.begin, whole_end}
  );
  StreamColumns<Weights, kRows, kDepth, 1>(OneTag(), args, row, feature, {whole_end, columns.end});
}

template <class Weights, int64_t kRows>
void StreamBlock(const ProductArgs& args, int64_t row, int64_t feature, Columns columns) {
  const int64_t end = std::min(feature + kStreamFeatures, args.matrix.in_features);
  constexpr int64_t kDepth = kStreamDepth<kRows>;
  for (; feature + kDepth <= end; feature += kDepth) {
    StreamFeatures<Weights, kRows, kDepth>(args, row, feature, columns);
  }
  for (; feature < end; ++feature) {
    StreamFeatures<Weights, kRows, 1>(args, row, feature, columns);
  }
}

template <class Weights>
void Stream(const ProductArgs& args, Columns columns) {
  for (int64_t feature = 0; feature < args.matrix.in_features; feature += kStreamFeatures) {
    int64_t row = 0;
    for (; row + kStreamRows <= args.rows; row += kStreamRows) {
      StreamBlock<Weights, kStreamRows>(args, row, feature, columns);
    }
    if (args.rows - row == 3) {
      StreamBlock<Weights, 3>(args, row, feature, columns);
    } else if (args.rows - row == 2) {
      StreamBlock<Weights, 2>(args, row, feature, columns);
    } else if (args.rows - row == 1) {
      StreamBlock<Weights, 1>(args, row, feature, columns);
    }
  }
}

// Fills args.panel with one block of the matrix, and asks for so many columns of later features.
template <class Weights>
void Pack(const ProductArgs& args, const Panel& panel, int64_t prefetch_columns) {
  using Element = typename Weights::Element;
  constexpr int64_t kPerCacheLine = 64 / sizeof(Element);
  const int64_t stride = args.matrix.out_features;
  const int64_t width = panel.columns.end - panel.columns.begin;
  const int64_t whole = width / kLanes * kLanes;
  const Element* weights =
      static_cast<const Element*>(args.matrix.data) + panel.feature * stride + panel.columns.begin;
  float* packed = args.panel;
  for (int64_t k = 0; k < panel.features; ++k, weights += stride, packed += kPanelColumns) {
    for (int64_t c = 0; c < prefetch_columns; c += kPerCacheLine) {
      hwy::Prefetch(weights + kFeaturesAhead * stride + c);
    }
    for (int64_t c = 0; c < whole; c += kLanes) {
      hn::StoreU(Weights::Widened(FloatTag(), weights + c), FloatTag(), packed + c);
    }
    for (int64_t c = whole; c < width; ++c) {
      hn::StoreU(Weights::Widened(OneTag(), weights + c), OneTag(), packed + c);
    }
    for (int64_t c = width; c < kPanelColumns; ++c) {
      packed[c] = 0;
    }
  }
}

template <class Weights>
void MultiplyPacked(const ProductArgs& args, Columns columns) {
  for (int64_t k = 0; k < args.matrix.in_features; k += kPanelFeatures) {
    for (int64_t begin = columns.begin; begin < columns.end; begin += kPanelColumns) {
      const Panel panel = {
          .feature = k,
          .features = std::min(kPanelFeatures, args.matrix.in_features - k),
          .columns = {begin, std::min(begin + kPanelColumns, columns.end)},
      };
      // The first panel fetches the rows of memory for the panels beside it, too.
      Pack<Weights>(args, panel, begin == columns.begin ? columns.end - columns.begin : 0);
      MultiplyPanel(args, panel);
    }
  }
}

template <class Weights>
void Multiply(const ProductArgs& args, Columns columns) {
  if (args.rows <= kInOutStreamRows) {
    Stream<Weights>(args, columns);
  } else {
    MultiplyPacked<Weights>(args, columns);
  }
}

}  // namespace

void InOutProduct(const ProductArgs& args, Columns columns) {
  switch (args.matrix.dtype) {
    case DType::kF32:
      return Multiply<F32Weights>(args, columns);
    case DType::kF16:
      return Multiply<F16Weights>(args, columns);
    case DType::kBF16:
      return Multiply<BF16Weights>(args, columns);
    default:
      CHECK(false) << "weights of " << NameOf(args.matrix.dtype);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace switchyard
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace switchyard {

HWY_EXPORT(InOutProduct);

void InOutProduct(const ProductArgs& args, Columns columns) {
  HWY_DYNAMIC_DISPATCH(InOutProduct)(args, columns);
}

}  // namespace switchyard
#endif
