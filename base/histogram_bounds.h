#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

namespace switchyard {

// Upper bounds for times from a tenth of a millisecond to ten seconds, three a decade.
inline constexpr std::array kSecondsByDecades = {
    0.0001,
    0.00025,
    0.0005,
    0.001,
    0.0025,
    0.005,
    0.01,
    0.025,
    0.05,
    0.1,
    0.25,
    0.5,
    1.0,
    2.5,
    5.0,
    10.0};

// `bounds` without the first few, and `more` after them.
template <size_t kLeftOut, size_t kBounds, size_t kMore>
constexpr std::array<double, kBounds - kLeftOut + kMore> WithoutFirstAndWith(
    const std::array<double, kBounds>& bounds, const std::array<double, kMore>& more
) {
  std::array<double, kBounds - kLeftOut + kMore> joined = {};
  const auto end = std::copy(bounds.begin() + kLeftOut, bounds.end(), joined.begin());
  std::copy(more.begin(), more.end(), end);
  return joined;
}

}  // namespace switchyard
