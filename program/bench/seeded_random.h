#pragma once

#include <cstdint>

namespace switchyard {

// Numbers that depend on (seed, purpose, index) alone, on any machine and with any compiler: the
// standard library's distributions may differ from one to the next. SplitMix64 (Steele, Lea and
// Flood, "Fast splittable pseudorandom number generators", 2014). Thread-compatible.
class SeededRandom {
 public:
  // What the numbers are for; different purposes give unrelated numbers.
  enum class Purpose : uint64_t { kArrival = 1, kPrefix = 2, kPrompt = 3, kShape = 4, kVerify = 5 };

  SeededRandom(uint64_t seed, Purpose purpose, uint64_t index);

  uint64_t Next();
  // In [0, 1), with 53 random bits.
  double NextUnit();
  // In [0, below). Requires: below > 0. Its bias is below / 2^64.
  uint64_t NextBelow(uint64_t below);
  // Of mean 0 and deviation 1 (Box and Muller); draws two units.
  double NextNormal();
  // Of mean 1.
  double NextExponential();

 private:
  uint64_t state_;
};

}  // namespace switchyard
