#include "program/bench/seeded_random.h"

#include <cmath>

namespace switchyard {
namespace {

constexpr uint64_t kGoldenGamma = 0x9E3779B97F4A7C15U;
constexpr double kTwoPi = 6.283185307179586;

uint64_t Mix(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
  return z ^ (z >> 31);
}

}  // namespace

SeededRandom::SeededRandom(uint64_t seed, Purpose purpose, uint64_t index)
    : state_(Mix(Mix(Mix(seed) + static_cast<uint64_t>(purpose)) + index)) {}

uint64_t SeededRandom::Next() {
  state_ += kGoldenGamma;
  return Mix(state_);
}

double SeededRandom::NextUnit() {
  return static_cast<double>(Next() >> 11) * 0x1p-53;
}

uint64_t SeededRandom::NextBelow(uint64_t below) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<uint64_t>((Wide{Next()} * below) >> 64);
}

double SeededRandom::NextNormal() {
  const double radius = std::sqrt(2 * NextExponential());
  return radius * std::cos(kTwoPi * NextUnit());
}

double SeededRandom::NextExponential() {
  // 1 - unit is in (0, 1]: its logarithm is finite.
  return -std::log(1 - NextUnit());
}

}  // namespace switchyard
