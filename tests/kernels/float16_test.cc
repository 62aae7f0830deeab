#include "kernels/float16.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>

namespace switchyard {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(Bf16, EveryPatternComesBackFromFloat) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const float widened = Bf16ToFloat(static_cast<uint16_t>(bits));
    const uint16_t narrowed = FloatToBf16(widened);

    if (std::isnan(widened)) {
      ASSERT_EQ(narrowed, bits | 0x40) << "a quiet NaN for " << bits;
    } else {
      ASSERT_EQ(narrowed, bits);
    }
  }
}

TEST(F16, EveryPatternComesBackFromFloat) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const float widened = F16ToFloat(static_cast<uint16_t>(bits));
    const uint16_t narrowed = FloatToF16(widened);

    if (std::isnan(widened)) {
      ASSERT_EQ(narrowed, bits | 0x200) << "a quiet NaN for " << bits;
    } else {
      ASSERT_EQ(narrowed, bits);
    }
  }
}

TEST(F16, EveryPatternHasTheValueOfItsFields) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const int exponent = static_cast<int>(bits >> 10 & 31);
    const int mantissa = static_cast<int>(bits & 1023);
    if (exponent == 31) {
      continue;
    }
    const double sign = bits < 32768 ? 1 : -1;
    const double magnitude =
        exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);

    ASSERT_EQ(F16ToFloat(static_cast<uint16_t>(bits)), sign * magnitude) << bits;
  }
}

TEST(Bf16, RoundsToTheNearestAndTiesToEven) {
  EXPECT_EQ(FloatToBf16(0x1.00p0F), 0x3f80);
  EXPECT_EQ(FloatToBf16(0x1.01p0F), 0x3f80) << "a tie, down to the even neighbour";
  EXPECT_EQ(FloatToBf16(0x1.010002p0F), 0x3f81) << "just above the tie";
  EXPECT_EQ(FloatToBf16(0x1.03p0F), 0x3f82) << "a tie, up to the even neighbour";
  EXPECT_EQ(FloatToBf16(-0x1.03p0F), 0xbf82);
}

TEST(Bf16, OverflowsToInfinity) {
  EXPECT_EQ(FloatToBf16(std::numeric_limits<float>::max()), 0x7f80);
  EXPECT_EQ(FloatToBf16(-kInfinity), 0xff80);
}

TEST(F16, RoundsToTheNearestAndTiesToEven) {
  EXPECT_EQ(FloatToF16(0x1.002p0F), 0x3c00) << "a tie, down to the even neighbour";
  EXPECT_EQ(FloatToF16(0x1.002002p0F), 0x3c01) << "just above the tie";
  EXPECT_EQ(FloatToF16(0x1.006p0F), 0x3c02) << "a tie, up to the even neighbour";
}

TEST(F16, OverflowsToInfinityFromHalfwayAboveTheLargest) {
  EXPECT_EQ(FloatToF16(65504.0F), 0x7bff);
  EXPECT_EQ(FloatToF16(65519.0F), 0x7bff);
  EXPECT_EQ(FloatToF16(65520.0F), 0x7c00);
  EXPECT_EQ(FloatToF16(1e10F), 0x7c00);
  EXPECT_EQ(FloatToF16(-kInfinity), 0xfc00);
}

TEST(F16, RoundsIntoTheSubnormals) {
  EXPECT_EQ(FloatToF16(0x1p-24F), 0x0001);
  EXPECT_EQ(FloatToF16(0x1p-25F), 0x0000) << "a tie, down to zero";
  EXPECT_EQ(FloatToF16(0x1.000002p-25F), 0x0001);
  EXPECT_EQ(FloatToF16(0x1.8p-24F), 0x0002) << "a tie, up to the even neighbour";
  EXPECT_EQ(FloatToF16(0x1.ffcp-15F), 0x0400) << "rounds up to the smallest normal";
  EXPECT_EQ(FloatToF16(-0x1p-30F), 0x8000);
}

TEST(Widen, ReadsEveryStrideOfEachDType) {
  std::array<float, 5> floats = {1, 2, 3, 4, 5};
  std::array<uint16_t, 5> bf16s = {0x3f80, 0x4000, 0x4040, 0x4080, 0x40a0};
  std::array<uint16_t, 5> f16s = {0x3c00, 0x4000, 0x4200, 0x4400, 0x4500};
  const StridedRange range = {.begin = 1, .stride = 3, .count = 2};

  for (const TensorView& source :
       {TensorView(floats.data(), DType::kF32, {5}),
        TensorView(bf16s.data(), DType::kBF16, {5}),
        TensorView(f16s.data(), DType::kF16, {5})}) {
    std::array<float, 2> widened = {};

    Widen(source, range, widened.data());

    EXPECT_EQ(widened[0], 2) << source.ToString();
    EXPECT_EQ(widened[1], 5) << source.ToString();
  }
}

}  // namespace
}  // namespace switchyard
