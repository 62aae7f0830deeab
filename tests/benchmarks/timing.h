#pragma once

#include <algorithm>
#include <chrono>
#include <vector>

namespace switchyard {

// The median of the seconds that `repeats` calls take, after one call that does not count.
template <typename Body>
double MedianSeconds(int repeats, const Body& body) {
  std::vector<double> seconds;
  for (int repeat = 0; repeat <= repeats; ++repeat) {
    const auto begin = std::chrono::steady_clock::now();
    body();
    seconds.push_back(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count()
    );
  }
  std::sort(seconds.begin() + 1, seconds.end());
  return seconds[1 + (seconds.size() - 1) / 2];
}

}  // namespace switchyard
