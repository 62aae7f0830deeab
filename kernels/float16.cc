#include "kernels/float16.h"

#include <cmath>

#include "base/check.h"

namespace switchyard {
namespace {

constexpr uint32_t kFloatInfinity = 0x7f800000;

float WidenOne(float value) {
  return value;
}

// Distinct from uint16_t only so that Widen can be one template.
struct Bf16 {
  uint16_t bits;
};
struct F16 {
  uint16_t bits;
};

float WidenOne(Bf16 value) {
  return Bf16ToFloat(value.bits);
}

float WidenOne(F16 value) {
  return F16ToFloat(value.bits);
}

template <typename Element>
void WidenElements(const void* source, const StridedRange& range, float* out) {
  const Element* elements = static_cast<const Element*>(source) + range.begin;
  for (int64_t i = 0; i < range.count; ++i) {
    out[i] = WidenOne(elements[i * range.stride]);
  }
}

// value / 2^shift, rounded to nearest, ties to even.
uint32_t ShiftRightRounded(uint32_t value, uint32_t shift) {
  const uint32_t half = uint32_t{1} << (shift - 1);
  const uint32_t odd = (value >> shift) & 1;
  return (value + half - 1 + odd) >> shift;
}

}  // namespace

uint16_t FloatToBf16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if (std::isnan(value)) {
    return static_cast<uint16_t>((bits >> 16) | 0x40);
  }
  // A carry out of the mantissa raises the exponent, up to infinity, which is what rounding asks
  // for.
  return static_cast<uint16_t>(ShiftRightRounded(bits, 16));
}

float F16ToFloat(uint16_t bits) {
  const uint32_t sign = uint32_t{bits & 0x8000u} << 16;
  const uint32_t exponent = (bits >> 10) & 0x1f;
  const uint32_t mantissa = bits & 0x3ff;
  if (exponent == 0x1f) {
    return std::bit_cast<float>(sign | kFloatInfinity | (mantissa << 13));
  }
  if (exponent == 0) {
    // Zero or subnormal: mantissa * 2^-24, exact in float32.
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24F;
    return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(magnitude));
  }
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
}

uint16_t FloatToF16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (bits >> 16) & 0x8000;
  const uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > kFloatInfinity) {
    return static_cast<uint16_t>(sign | 0x7e00 | ((magnitude >> 13) & 0x3ff));
  }
  if (magnitude >= 0x47800000) {  // 2^16 and more, infinity too
    return static_cast<uint16_t>(sign | 0x7c00);
  }
  if (magnitude >= 0x38800000) {  // 2^-14, the smallest normal: rebase the exponent from 127 to 15
    return static_cast<uint16_t>(sign | ShiftRightRounded(magnitude - (uint32_t{112} << 23), 13));
  }
  const uint32_t exponent = magnitude >> 23;
  if (exponent < 102) {  // below half of the smallest subnormal
    return static_cast<uint16_t>(sign);
  }
  const uint32_t mantissa = (magnitude & 0x7fffff) | 0x800000;
  return static_cast<uint16_t>(sign | ShiftRightRounded(mantissa, 126 - exponent));
}

void Widen(TensorView source, const StridedRange& range, float* out) {
  switch (source.dtype()) {
    case DType::kF32:
      return WidenElements<float>(source.data(), range, out);
    case DType::kBF16:
      return WidenElements<Bf16>(source.data(), range, out);
    case DType::kF16:
      return WidenElements<F16>(source.data(), range, out);
    default:
      CHECK(false) << "no widening from " << source.ToString();
  }
}

}  // namespace switchyard
