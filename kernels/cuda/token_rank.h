#pragma once

#include "kernels/cuda/block.h"
#include "kernels/cuda/device.h"

// Tokens in the order in which SelectTokens ranks them, and how to find a place in that order
// without sorting. A rank is one number: larger is better, no two tokens have the same.
//
// A probability is an integer here, the token's odds to the likeliest one in units of 2^-40.
// Integers add in any order, so sums over the vocabulary are exact and the same in every run.

namespace switchyard {

inline constexpr double kOddsUnits = 1099511627776.0;  // 2^40; a vocabulary of 2^23 cannot overflow
inline constexpr int kDigitBits = 8;
inline constexpr int kDigits = 1 << kDigitBits;
inline constexpr int kRankBits = 64;

// By logit, the lowest id first among equals. Requires: no NaN.
__device__ __forceinline__ uint64_t TokenRank(float logit, int64_t id) {
  const uint32_t bits = BitsOfFloat(logit + 0.0F);  // -0 equals 0
  const uint32_t order = (bits & 0x80000000U) != 0 ? ~bits : bits | 0x80000000U;
  return uint64_t{order} << 32 | static_cast<uint32_t>(~static_cast<uint32_t>(id));
}

__device__ __forceinline__ int64_t TokenOfRank(uint64_t rank) {
  return static_cast<uint32_t>(~static_cast<uint32_t>(rank));
}

// The logits of one row and what makes odds of them.
struct RowLogits {
  Global<const float> logits;
  int64_t vocabulary = 0;
  float largest = 0;
  float temperature = 0;

  __device__ uint64_t RankOf(int64_t id) const { return TokenRank(logits[id], id); }
  // The logarithm of the odds. The largest is subtracted before the division, so that no
  // temperature overflows.
  __device__ double LogOddsOf(int64_t id) const {
    return (static_cast<double>(logits[id]) - largest) / temperature;
  }
  // Relative to the likeliest token; 0 where it is forbidden.
  __device__ double OddsOf(int64_t id) const {
    return logits[id] == -INFINITY ? 0 : exp(LogOddsOf(id));
  }
  __device__ int64_t UnitsOf(int64_t id) const {
    // Never negative. NOLINTNEXTLINE(bugprone-incorrect-roundings)
    return static_cast<int64_t>(OddsOf(id) * kOddsUnits + 0.5);
  }
};

struct RankMemory {
  Shared<int64_t> digits;  // [kDigits]
  Shared<int64_t> found;   // [2]
};

// The lowest rank of the smallest set of best tokens, among those of rank `floor` and above, whose
// weights reach `target`. `ranking.vocabulary` tokens, of which no two that matter have the same
// `ranking.RankOf(id)`; `weight(id)` is an integer; all threads of the block call this. Requires:
// the weights of all of them do reach it.
template <typename Ranking, typename WeightOfToken>
__device__ inline uint64_t RankThatReaches(
    const Ranking& ranking,
    uint64_t floor,
    int64_t target,
    const RankMemory& memory,
    WeightOfToken weight
) {
  uint64_t prefix = 0;  // the digits that are known
  int64_t above = 0;    // what the tokens better than the prefix weigh
  for (int shift = kRankBits - kDigitBits; shift >= 0; shift -= kDigitBits) {
    for (int i = static_cast<int>(threadIdx.x); i < kDigits; i += static_cast<int>(blockDim.x)) {
      memory.digits[i] = 0;
    }
    __syncthreads();
    for (int64_t id = threadIdx.x; id < ranking.vocabulary; id += blockDim.x) {
      const uint64_t rank = ranking.RankOf(id);
      // A shift by all 64 bits means nothing to the hardware.
      const bool same = shift == kRankBits - kDigitBits ||
                        rank >> (shift + kDigitBits) == prefix >> (shift + kDigitBits);
      if (rank >= floor && same) {
        AtomicAdd(memory.digits, static_cast<int64_t>(rank >> shift & (kDigits - 1)), weight(id));
      }
    }
    __syncthreads();
    if (threadIdx.x == 0) {
      int digit = kDigits - 1;
      int64_t sum = above;
      while (digit > 0 && sum + memory.digits[digit] < target) {
        sum += memory.digits[digit];
        --digit;
      }
      memory.found[0] = digit;
      memory.found[1] = sum;
    }
    __syncthreads();
    prefix |= static_cast<uint64_t>(int64_t(memory.found[0])) << shift;
    above = memory.found[1];
    __syncthreads();
  }
  return prefix;
}

}  // namespace switchyard
