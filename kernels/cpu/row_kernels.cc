#include "kernels/cpu/row_kernels.h"

#include <cmath>
#include <limits>
#include <numbers>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/row_kernels.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h, which compiles all that follows once for each instruction set.
#include "hwy/contrib/math/math-inl.h"
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
static_assert(kSoftmaxPadding % kLanes == 0);

// Highway's exponential turns NaN into zero, which would hide a broken activation.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Exponential(D d, V x) {
  return hn::IfThenElse(hn::IsNaN(x), x, hn::Exp(d, x));
}

// By the exponential of -|x|, which cannot overflow.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Sigmoid(D d, V x) {
  const V one = hn::Set(d, 1.0F);
  const V small = Exponential(d, hn::Neg(hn::Abs(x)));
  const V numerator = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), small, one);
  return hn::Div(numerator, hn::Add(one, small));
}

// Highway has no error function; lane by lane, as the reference computes it.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Gelu(D d, V x) {
  float lanes[kLanes];
  hn::StoreU(x, d, lanes);
  for (size_t i = 0; i < hn::Lanes(d); ++i) {
    lanes[i] = 0.5F * lanes[i] * (1.0F + std::erf(lanes[i] / std::numbers::sqrt2_v<float>));
  }
  return hn::LoadU(d, lanes);
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V GeluTanh(D d, V x) {
  const float scale = std::numbers::sqrt2_v<float> * std::numbers::inv_sqrtpi_v<float>;
  const V cube = hn::Mul(hn::Mul(x, x), x);
  const V inner = hn::Mul(hn::Set(d, scale), hn::MulAdd(hn::Set(d, 0.044715F), cube, x));
  // 0.5 * (1 + tanh(y)) is sigmoid(2 y), without the cancellation near -1.
  return hn::Mul(x, Sigmoid(d, hn::Add(inner, inner)));
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V Activated(D d, ActivationKind kind, V x) {
  switch (kind) {
    case ActivationKind::kIdentity:
      return x;
    case ActivationKind::kRelu:
      return hn::IfThenZeroElse(hn::Lt(x, hn::Zero(d)), x);
    case ActivationKind::kSilu:
      return hn::Mul(x, Sigmoid(d, x));
    case ActivationKind::kGelu:
      return Gelu(d, x);
    case ActivationKind::kGeluTanh:
      return GeluTanh(d, x);
    case ActivationKind::kSigmoid:
      return Sigmoid(d, x);
  }
  return x;
}

template <class D>
HWY_INLINE void ActivateAt(
    D d, const ActivateRowArgs& args, const float* input, int64_t column, float* out
) {
  auto activated = Activated(d, args.kind, hn::LoadU(d, input + column));
  if (args.factor != nullptr) {
    activated = hn::Mul(activated, hn::LoadU(d, args.factor + column));
  }
  hn::StoreU(activated, d, out + column);
}

// The sum of (x - center)^power over the row, power 1 or 2.
enum class Power : uint8_t { kOne, kTwo };
HWY_INLINE float SumRow(const float* x, int64_t dim, float center, Power power) {
  const FloatTag d;
  const Vector centers = hn::Set(d, center);
  Vector sums = hn::Zero(d);
  int64_t column = 0;
  for (; column + kLanes <= dim; column += kLanes) {
    const Vector centered = hn::Sub(hn::LoadU(d, x + column), centers);
    sums = power == Power::kOne ? hn::Add(sums, centered) : hn::MulAdd(centered, centered, sums);
  }
  float sum = hn::GetLane(hn::SumOfLanes(d, sums));
  for (; column < dim; ++column) {
    const float centered = x[column] - center;
    sum += power == Power::kOne ? centered : centered * centered;
  }
  return sum;
}

}  // namespace

void ActivateRow(const ActivateRowArgs& args, const float* input, float* out) {
  int64_t column = 0;
  for (; column + kLanes <= args.dim; column += kLanes) {
    ActivateAt(FloatTag(), args, input, column, out);
  }
  for (; column < args.dim; ++column) {
    ActivateAt(OneTag(), args, input, column, out);
  }
}

void NormalizeRow(const NormalizeRowArgs& args, const float* input, float* out) {
  const auto dim = static_cast<float>(args.dim);
  const float center =
      args.kind == NormKind::kLayer ? SumRow(input, args.dim, 0.0F, Power::kOne) / dim : 0.0F;
  const float variance = SumRow(input, args.dim, center, Power::kTwo) / dim;
  const float inverse_deviation = 1.0F / std::sqrt(variance + args.epsilon);
  for (int64_t column = 0; column < args.dim; ++column) {
    const float normed = (input[column] - center) * inverse_deviation * args.weight[column];
    out[column] = args.bias == nullptr ? normed : normed + args.bias[column];
  }
}

float ExponentialsRow(float scale, float* products, int64_t count) {
  const FloatTag d;
  const int64_t padded = (count + kLanes - 1) / kLanes * kLanes;
  // A lane without a key weighs exp(-infinity), zero.
  const float nothing = -std::numeric_limits<float>::infinity();
  for (int64_t j = 0; j < count; ++j) {
    products[j] *= scale;
  }
  for (int64_t j = count; j < padded; ++j) {
    products[j] = nothing;
  }
  Vector largest = hn::Set(d, nothing);
  for (int64_t j = 0; j < padded; j += kLanes) {
    largest = hn::Max(largest, hn::LoadU(d, products + j));
  }
  largest = hn::MaxOfLanes(d, largest);
  Vector sums = hn::Zero(d);
  for (int64_t j = 0; j < padded; j += kLanes) {
    const Vector weight = Exponential(d, hn::Sub(hn::LoadU(d, products + j), largest));
    hn::StoreU(weight, d, products + j);
    sums = hn::Add(sums, weight);
  }
  return hn::GetLane(hn::SumOfLanes(d, sums));
}

double LogSumExpRow(const float* logits, int64_t count) {
  const FloatTag d;
  const int64_t whole = count / kLanes * kLanes;
  Vector largest = hn::Set(d, logits[0]);
  for (int64_t i = 0; i < whole; i += kLanes) {
    largest = hn::Max(largest, hn::LoadU(d, logits + i));
  }
  float top = hn::GetLane(hn::MaxOfLanes(d, largest));
  for (int64_t i = whole; i < count; ++i) {
    top = logits[i] > top ? logits[i] : top;
  }
  const Vector tops = hn::Set(d, top);
  double sum = 0;
  for (int64_t begin = 0; begin < whole; begin += kLogSumRun) {
    const int64_t end = begin + kLogSumRun < whole ? begin + kLogSumRun : whole;
    Vector sums = hn::Zero(d);
    for (int64_t i = begin; i < end; i += kLanes) {
      sums = hn::Add(sums, hn::Exp(d, hn::Sub(hn::LoadU(d, logits + i), tops)));
    }
    sum += static_cast<double>(hn::GetLane(hn::SumOfLanes(d, sums)));
  }
  const OneTag one;
  for (int64_t i = whole; i < count; ++i) {
    sum += static_cast<double>(hn::GetLane(hn::Exp(one, hn::Set(one, logits[i] - top))));
  }
  return static_cast<double>(top) + std::log(sum);
}

}  // namespace HWY_NAMESPACE
}  // namespace switchyard
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace switchyard {

HWY_EXPORT(ActivateRow);
HWY_EXPORT(NormalizeRow);
HWY_EXPORT(ExponentialsRow);
HWY_EXPORT(LogSumExpRow);

void ActivateRow(const ActivateRowArgs& args, const float* input, float* out) {
  HWY_DYNAMIC_DISPATCH(ActivateRow)(args, input, out);
}

void NormalizeRow(const NormalizeRowArgs& args, const float* input, float* out) {
  HWY_DYNAMIC_DISPATCH(NormalizeRow)(args, input, out);
}

float ExponentialsRow(float scale, float* products, int64_t count) {
  return HWY_DYNAMIC_DISPATCH(ExponentialsRow)(scale, products, count);
}

double LogSumExpRow(const float* logits, int64_t count) {
  return HWY_DYNAMIC_DISPATCH(LogSumExpRow)(logits, count);
}

}  // namespace switchyard
#endif
