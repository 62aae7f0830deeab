#include "kernels/cpu/out_in_kernels.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/out_in_kernels.cc"
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
using Vector = hn::Vec<FloatTag>;

constexpr auto kLanes = static_cast<int64_t>(hn::MaxLanes(FloatTag()));
constexpr int64_t kBlock = 2 * kLanes;
static_assert(kOutInPadding % kBlock == 0);

// The register tile: with 32 registers 24 sums, 6 weights and an input fit.
#if HWY_TARGET <= HWY_AVX3
constexpr int64_t kTileRows = 4;
constexpr int64_t kTileOutputs = 6;
#else
constexpr int64_t kTileRows = 2;
constexpr int64_t kTileOutputs = 4;
#endif
// Few rows wait for memory only, and memory likes fewer outputs at a time.
constexpr int64_t kStreamRows = 2;
constexpr int64_t kStreamOutputs = 4;
constexpr int64_t kRowsPerBlock = 64;  // inputs of so many rows stay in the second cache level
// Of each output of a tile: its weights stay in the first one while the rows go by.
constexpr int64_t kBytesPerPart = 4096;
static_assert(kRowsPerBlock * kTileOutputs * kLanes <= kPanelFloats);

// The low (0) or high (1) half of a block, widened.
struct F32Weights {
  using Element = float;
  template <int64_t kHalf>
  static HWY_INLINE Vector Half(const Element* block) {
    return hn::LoadU(FloatTag(), block + kHalf * kLanes);
  }
};

struct F16Weights {
  using Element = hwy::float16_t;
  template <int64_t kHalf>
  static HWY_INLINE Vector Half(const Element* block) {
    const hn::Rebind<Element, FloatTag> narrow;
    return hn::PromoteTo(FloatTag(), hn::LoadU(narrow, block + kHalf * kLanes));
  }
};

struct BF16Weights {
  using Element = uint16_t;
  template <int64_t kHalf>
  static HWY_INLINE Vector Half(const Element* block) {
    const hn::RebindToUnsigned<FloatTag> wide;
    const auto pairs = hn::LoadU(wide, reinterpret_cast<const uint32_t*>(block));
    return hn::BitCast(
        FloatTag(),
        kHalf == 0 ? hn::ShiftLeft<16>(pairs) : hn::And(pairs, hn::Set(wide, 0xFFFF0000U))
    );
  }
};

// Lane i of the result is the sum of the lanes of vectors[i], added pairwise.
template <int64_t kCount, int64_t kWidth>
HWY_INLINE Vector SumEach(const Vector* vectors) {
#if HWY_TARGET != HWY_SCALAR
  if constexpr (kWidth > 1) {
    constexpr int64_t kHalf = (kCount + 1) / 2;
    Vector halves[kHalf];
    for (int64_t i = 0; i < kHalf; ++i) {
      const Vector a = vectors[int64_t{2} * i];
      const Vector b = vectors[2 * i + 1 < kCount ? 2 * i + 1 : 2 * i];
      halves[i] = hn::Add(hn::ConcatEven(FloatTag(), b, a), hn::ConcatOdd(FloatTag(), b, a));
    }
    return SumEach<kHalf, kWidth / 2>(halves);
  }
#endif
  return vectors[0];
}

// sums[i] = the lanes of vectors[i] added; writes up to kLanes floats more than kCount.
template <int64_t kCount>
HWY_INLINE void StoreSums(const Vector* vectors, float* sums) {
  constexpr int64_t kGroup = kCount < kLanes ? kCount : kLanes;
  hn::StoreU(SumEach<kGroup, kLanes>(vectors), FloatTag(), sums);
  if constexpr (kCount > kGroup) {
    StoreSums<kCount - kGroup>(vectors + kGroup, sums + kGroup);
  }
}

// sums[r * kOutputs + o] += inputs[r] * weights[o] over half a block.
template <class Weights, int64_t kHalf, int64_t kRows, int64_t kOutputs>
HWY_INLINE void AddHalf(
    const typename Weights::Element* const (&weights)[kOutputs],
    int64_t weight,
    const float* const (&inputs)[kRows],
    int64_t input,
    Vector (&sums)[kRows * kOutputs]
) {
  Vector widened[kOutputs];
  for (int64_t o = 0; o < kOutputs; ++o) {
    widened[o] = Weights::template Half<kHalf>(weights[o] + weight);
  }
  for (int64_t r = 0; r < kRows; ++r) {
    const Vector x = hn::LoadU(FloatTag(), inputs[r] + input + kHalf * kLanes);
    for (int64_t o = 0; o < kOutputs; ++o) {
      sums[r * kOutputs + o] = hn::MulAdd(x, widened[o], sums[r * kOutputs + o]);
    }
  }
}

// A range of input features. Between two parts the sums of a tile rest, lane by lane, in `resting`.
struct Part {
  int64_t begin = 0;
  int64_t end = 0;
  float* resting = nullptr;
};

template <class Weights, int64_t kRows, int64_t kOutputs>
HWY_NOINLINE void MultiplyTile(
    const ProductArgs& args, const Part& part, int64_t row, int64_t column
) {
  using Element = typename Weights::Element;
  const int64_t in_features = args.matrix.in_features;
  const Element* weights[kOutputs];
  for (int64_t o = 0; o < kOutputs; ++o) {
    weights[o] = static_cast<const Element*>(args.matrix.data) + (column + o) * in_features;
  }
  const float* inputs[kRows];
  for (int64_t r = 0; r < kRows; ++r) {
    inputs[r] = args.inputs[row + r];
  }
  Vector vectors[kRows * kOutputs];
  for (int64_t i = 0; i < kRows * kOutputs; ++i) {
    vectors[i] =
        part.begin == 0 ? hn::Zero(FloatTag()) : hn::LoadU(FloatTag(), part.resting + i * kLanes);
  }

  const int64_t whole = std::min(part.end, in_features / kBlock * kBlock);
  for (int64_t k = part.begin; k < whole; k += kBlock) {
    if (row == 0) {
      // The first tile of rows fetches the weights of the next outputs for itself and the others.
      for (int64_t o = 0; o < kOutputs; ++o) {
        hwy::Prefetch(weights[o] + kOutputs * in_features + k);
      }
    }
    AddHalf<Weights, 0>(weights, k, inputs, k, vectors);
    AddHalf<Weights, 1>(weights, k, inputs, k, vectors);
  }
  if (part.end < in_features) {
    for (int64_t i = 0; i < kRows * kOutputs; ++i) {
      hn::StoreU(vectors[i], FloatTag(), part.resting + i * kLanes);
    }
    return;
  }
  if (whole < in_features) {
    // The matrix may end where its file ends: no vector load may reach past its last element.
    Element padded[kOutputs][kBlock];
    std::memset(padded, 0, sizeof(padded));
    const auto bytes = static_cast<size_t>(in_features - whole) * sizeof(Element);
    for (int64_t o = 0; o < kOutputs; ++o) {
      std::memcpy(padded[o], weights[o] + whole, bytes);
      weights[o] = padded[o];
    }
    AddHalf<Weights, 0>(weights, 0, inputs, whole, vectors);
    AddHalf<Weights, 1>(weights, 0, inputs, whole, vectors);
  }

  float sums[int64_t{kRows} * kOutputs + kLanes];
  StoreSums<kRows * kOutputs>(vectors, sums);
  for (int64_t r = 0; r < kRows; ++r) {
    std::memcpy(args.outputs[row + r] + column, sums + r * kOutputs, kOutputs * sizeof(float));
  }
}

template <class Weights, int64_t kOutputs>
void MultiplyRows(const ProductArgs& args, int64_t begin, int64_t end, int64_t column) {
  constexpr int64_t kFeaturesPerPart = kBytesPerPart / sizeof(typename Weights::Element);
  static_assert(kFeaturesPerPart % kBlock == 0);
  const int64_t in_features = args.matrix.in_features;
  const int64_t features = end - begin <= kTileRows ? in_features : kFeaturesPerPart;
  for (int64_t k = 0; k < in_features; k += features) {
    Part part = {.begin = k, .end = std::min(k + features, in_features), .resting = args.panel};
    int64_t row = begin;
    for (; row + kTileRows <= end; row += kTileRows) {
      MultiplyTile<Weights, kTileRows, kOutputs>(args, part, row, column);
      part.resting += int64_t{kTileRows} * kOutputs * kLanes;
    }
    if (end - row == 3) {
      MultiplyTile<Weights, 3, kOutputs>(args, part, row, column);
    } else if (end - row == 2) {
      MultiplyTile<Weights, 2, kOutputs>(args, part, row, column);
    } else if (end - row == 1) {
      MultiplyTile<Weights, 1, kOutputs>(args, part, row, column);
    }
  }
}

template <class Weights>
void Multiply(const ProductArgs& args, Columns columns) {
  for (int64_t row = 0; row < args.rows; row += kRowsPerBlock) {
    const int64_t end = std::min(row + kRowsPerBlock, args.rows);
    int64_t column = columns.begin;
    if (end - row <= kStreamRows) {
      for (; column + kStreamOutputs <= columns.end; column += kStreamOutputs) {
        MultiplyRows<Weights, kStreamOutputs>(args, row, end, column);
      }
    } else {
      for (; column + kTileOutputs <= columns.end; column += kTileOutputs) {
        MultiplyRows<Weights, kTileOutputs>(args, row, end, column);
      }
    }
    for (; column < columns.end; ++column) {
      MultiplyRows<Weights, 1>(args, row, end, column);
    }
  }
}

}  // namespace

void OutInProduct(const ProductArgs& args, Columns columns) {
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

HWY_EXPORT(OutInProduct);

void OutInProduct(const ProductArgs& args, Columns columns) {
  HWY_DYNAMIC_DISPATCH(OutInProduct)(args, columns);
}

}  // namespace switchyard
#endif
