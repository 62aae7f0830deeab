#pragma once

#include "kernels/cuda/block.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/token_rank.h"
#include "kernels/ops.h"

// What top_k, top_p, min_p and typical_p leave of a row, found by its whole block.

namespace switchyard {

struct SelectMemory {
  Shared<double> doubles;    // [warps]
  Shared<uint64_t> ranks;    // [warps]
  Shared<int64_t> integers;  // [threads]
  RankMemory rank;
};

// The tokens of at least a rank, and the typical ones among them.
struct KeptTokens {
  RowLogits logits;
  uint64_t floor = 0;
  uint64_t typical_floor = 0;  // 0: whether they are typical is not asked
  double mean_log_odds = 0;    // over the tokens from `floor` on
  int64_t vocabulary = 0;

  // By nearness of -log(probability) to its mean, which the logarithms of the odds share; the
  // lowest id first among equals. 0 below `floor`.
  __device__ uint64_t RankOf(int64_t id) const {
    if (logits.RankOf(id) < floor) {
      return 0;
    }
    constexpr double kLargest = 3.4028234663852886e38;
    const double distance = fabs(logits.LogOddsOf(id) - mean_log_odds);
    const auto saturated = static_cast<float>(distance < kLargest ? distance : kLargest);
    return uint64_t{~BitsOfFloat(saturated)} << 32 |
           static_cast<uint32_t>(~static_cast<uint32_t>(id));
  }
  __device__ bool Has(int64_t id) const {
    return typical_floor == 0 ? logits.RankOf(id) >= floor : RankOf(id) >= typical_floor;
  }
};

template <typename WeightOfToken>
__device__ inline int64_t WeightFrom(
    const RowLogits& logits, uint64_t floor, const SelectMemory& memory, WeightOfToken weight
) {
  int64_t sum = 0;
  for (int64_t id = threadIdx.x; id < logits.vocabulary; id += blockDim.x) {
    sum += logits.RankOf(id) >= floor ? weight(id) : 0;
  }
  return BlockSum<int64_t>(memory.integers, sum);
}

// The share of `all` that the smallest set has to reach; a set has at least one token.
__device__ __forceinline__ int64_t UnitsOfShare(float share, int64_t all) {
  const double target = ceil(static_cast<double>(share) * static_cast<double>(all));
  return target < 1 ? 1 : static_cast<int64_t>(target);
}

// The lowest rank that top_k, top_p and min_p leave.
__device__ inline uint64_t LowestKept(
    const SelectTokensRow& row, const RowLogits& logits, const SelectMemory& memory
) {
  const auto one = [](int64_t /*id*/) { return int64_t{1}; };
  const auto units = [&](int64_t id) { return logits.UnitsOf(id); };
  // Forbidden tokens rank below this one, whose id no vocabulary has.
  uint64_t floor = TokenRank(-INFINITY, 0) + 1;
  if (row.top_k > 0 && row.top_k < WeightFrom(logits, floor, memory, one)) {
    floor = RankThatReaches(logits, floor, row.top_k, memory.rank, one);
  }
  if (row.top_p < 1) {
    const int64_t all = WeightFrom(logits, floor, memory, units);
    floor = RankThatReaches(logits, floor, UnitsOfShare(row.top_p, all), memory.rank, units);
  }
  if (row.min_p > 0) {
    uint64_t lowest = ~uint64_t{0};
    for (int64_t id = threadIdx.x; id < logits.vocabulary; id += blockDim.x) {
      const uint64_t rank = logits.RankOf(id);
      const bool kept = rank >= floor && logits.OddsOf(id) >= static_cast<double>(row.min_p);
      lowest = kept && rank < lowest ? rank : lowest;
    }
    floor = ~BlockMax<uint64_t>(memory.ranks, ~lowest);
  }
  return floor;
}

__device__ inline KeptTokens KeepTokens(
    const SelectTokensRow& row, const RowLogits& logits, const SelectMemory& memory
) {
  KeptTokens kept;
  kept.logits = logits;
  kept.vocabulary = logits.vocabulary;
  kept.floor = LowestKept(row, logits, memory);
  if (row.typical_p >= 1) {
    return kept;
  }
  double odds = 0;
  double moment = 0;
  for (int64_t id = threadIdx.x; id < logits.vocabulary; id += blockDim.x) {
    if (kept.Has(id)) {
      const double own = logits.OddsOf(id);
      odds += own;
      moment += own * logits.LogOddsOf(id);
    }
  }
  odds = BlockSum<double>(memory.doubles, odds);
  kept.mean_log_odds = BlockSum<double>(memory.doubles, moment) / odds;
  const auto units = [&](int64_t id) { return logits.UnitsOf(id); };
  const int64_t all = WeightFrom(logits, kept.floor, memory, units);
  kept.typical_floor =
      RankThatReaches(kept, 1, UnitsOfShare(row.typical_p, all), memory.rank, units);
  return kept;
}

}  // namespace switchyard
