#pragma once

#include <array>
#include <cstdint>

// Random numbers that are a function of (seed, position) and of nothing else, so that a request
// draws the same ones alone, in a batch, after a preemption and on every backend.

namespace switchyard {

// Philox-4x32 with ten rounds (Salmon, Moraes, Dror and Shaw: Parallel random numbers, as easy as
// 1, 2, 3; 2011).
std::array<uint32_t, 4> Philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

// In [0, 1), a multiple of 2^-53.
double UniformDraw(uint64_t seed, uint64_t position);

}  // namespace switchyard
