#pragma once

#include "kernels/cuda/block.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/kept_tokens.h"
#include "kernels/cuda/token_rank.h"
#include "kernels/ops.h"

// How a block of SelectTokens chooses the token of its row.

namespace switchyard {

// A row with the number that its draw uses, which the host computes.
struct DeviceRow {
  SelectTokensRow row;
  double uniform = 0;
};

struct SelectArgs {
  Global<const float> raw;  // [rows, vocabulary]
  Global<float> logits;     // the same, after penalties and bias
  Global<const DeviceRow> rows;
  Global<const int32_t> history_ids;
  Global<const int32_t> history_counts;
  Global<const int32_t> bias_ids;
  Global<const float> bias_values;
  Global<const int32_t> allowed_ids;
  Global<int32_t> ids;
  Global<float> logprobs;  // absent: nobody wants any
  Global<int32_t> top_ids;
  Global<float> top_logprobs;
  int64_t vocabulary = 0;
  int64_t max_top = 0;
};

inline constexpr int kSelectThreads = 512;
inline constexpr int64_t kTokensPerThread = 8;

__device__ __forceinline__ float Saturated(float logit) {
  constexpr float kLargest = 3.4028234663852886e38F;
  const float below = logit > kLargest ? kLargest : logit;
  return below < -kLargest ? -kLargest : below;
}

// Over all threads; the row is fit for use when every raw logit is finite.
__device__ inline bool AllFinite(
    const SelectArgs& args, int64_t begin, const SelectMemory& memory
) {
  int64_t bad = 0;
  for (int64_t id = threadIdx.x; id < args.vocabulary; id += blockDim.x) {
    bad += IsFinite(args.raw[begin + id]) ? 0 : 1;
  }
  return BlockSum<int64_t>(memory.integers, bad) == 0;
}

__device__ inline double LogSumExp(
    const SelectArgs& args, int64_t begin, const SelectMemory& memory
) {
  double largest = -INFINITY;
  for (int64_t id = threadIdx.x; id < args.vocabulary; id += blockDim.x) {
    const double logit = args.raw[begin + id];
    largest = logit > largest ? logit : largest;
  }
  largest = BlockMax<double>(memory.doubles, largest);
  double sum = 0;
  for (int64_t id = threadIdx.x; id < args.vocabulary; id += blockDim.x) {
    sum += exp(args.raw[begin + id] - largest);
  }
  return largest + log(BlockSum<double>(memory.doubles, sum));
}

// Penalties in parallel, as the ids of a history are distinct; biases one after the other, as a
// token may have several.
__device__ inline void ApplyPenaltiesAndBias(
    const SelectArgs& args, const SelectTokensRow& row, int64_t begin
) {
  for (int64_t i = row.history_begin + threadIdx.x; i < row.history_end; i += blockDim.x) {
    float& slot = args.logits[begin + args.history_ids[i]];
    const int32_t count = args.history_counts[i];
    float logit = slot;
    logit = logit > 0 ? logit / row.repetition_penalty : logit * row.repetition_penalty;
    logit = Saturated(logit);
    if (count > 0) {
      logit -= row.presence_penalty;
      logit -= row.frequency_penalty * static_cast<float>(count);
    }
    slot = Saturated(logit);
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int64_t i = row.bias_begin; i < row.bias_end; ++i) {
      float& slot = args.logits[begin + args.bias_ids[i]];
      const float bias = args.bias_values[i];
      const bool forbidden = bias == -INFINITY || slot == -INFINITY;
      slot = forbidden ? -INFINITY : Saturated(slot + bias);
    }
  }
  __syncthreads();
}

// A bisection for each token, not a stretch between two allowed ids: one allowed id would leave the
// whole row to two threads.
__device__ inline void ForbidAllBut(
    const SelectArgs& args, const SelectTokensRow& row, int64_t begin
) {
  for (int64_t id = threadIdx.x; id < args.vocabulary; id += blockDim.x) {
    int64_t low = row.allowed_begin;
    int64_t high = row.allowed_end;
    while (low < high) {
      const int64_t middle = (low + high) / 2;
      if (args.allowed_ids[middle] < id) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    if (low == row.allowed_end || args.allowed_ids[low] != id) {
      args.logits[begin + id] = -INFINITY;
    }
  }
  __syncthreads();
}

// The best rank below `limit`; 0 when there is none.
__device__ inline uint64_t BestBelow(
    const Global<const float>& logits,
    int64_t vocabulary,
    uint64_t limit,
    const SelectMemory& memory
) {
  uint64_t best = 0;
  for (int64_t id = threadIdx.x; id < vocabulary; id += blockDim.x) {
    const uint64_t rank = TokenRank(logits[id], id);
    best = rank < limit && rank > best ? rank : best;
  }
  return BlockMax<uint64_t>(memory.ranks, best);
}

// The token, by ascending id, at which the odds kept so far exceed `uniform` of all. A thread takes
// a stretch of ids.
__device__ inline int64_t DrawToken(
    const KeptTokens& kept, double uniform, const SelectMemory& memory
) {
  const int threads = static_cast<int>(blockDim.x);
  const int thread = static_cast<int>(threadIdx.x);
  const int64_t stretch = (kept.vocabulary + threads - 1) / threads;
  const int64_t begin = thread * stretch;
  const int64_t end = begin + stretch < kept.vocabulary ? begin + stretch : kept.vocabulary;
  const auto units = [&](int64_t id) {
    return kept.Has(id) ? kept.logits.UnitsOf(id) : int64_t{0};
  };
  int64_t own = 0;
  for (int64_t id = begin; id < end; ++id) {
    own += units(id);
  }
  memory.integers[thread] = own;
  __syncthreads();
  int64_t before = 0;
  int64_t all = 0;
  for (int t = 0; t < threads; ++t) {
    const int64_t other = memory.integers[t];
    before += t < thread ? other : 0;
    all += other;
  }
  // Less than all, as uniform is less than one.
  const auto target = static_cast<int64_t>(uniform * static_cast<double>(all));
  if (before <= target && target < before + own) {
    int64_t sum = before;
    int64_t id = begin;
    while (sum + units(id) <= target) {
      sum += units(id);
      ++id;
    }
    memory.rank.found[0] = id;
  }
  __syncthreads();
  const int64_t drawn = memory.rank.found[0];
  __syncthreads();
  return drawn;
}

__device__ inline void FillTop(
    const SelectArgs& args, int64_t row, int32_t count, double log_sum, const SelectMemory& memory
) {
  const Global<const float> raw = args.raw.From(row * args.vocabulary);
  uint64_t last = ~uint64_t{0};
  for (int64_t i = 0; i < count; ++i) {
    last = BestBelow(raw, args.vocabulary, last, memory);
    if (threadIdx.x == 0) {
      const int64_t id = TokenOfRank(last);
      args.top_ids[row * args.max_top + i] = last == 0 ? -1 : static_cast<int32_t>(id);
      args.top_logprobs[row * args.max_top + i] =
          last == 0 ? -INFINITY : static_cast<float>(raw[id] - log_sum);
    }
  }
}

// kEveryTokenForbidden when no token is left.
__device__ inline int64_t ChooseToken(
    const SelectArgs& args, int64_t row, const SelectTokensRow& wanted, const SelectMemory& memory
) {
  const int64_t begin = row * args.vocabulary;
  for (int64_t id = threadIdx.x; id < args.vocabulary; id += blockDim.x) {
    args.logits[begin + id] = args.raw[begin + id];
  }
  __syncthreads();
  ApplyPenaltiesAndBias(args, wanted, begin);
  if (wanted.allowed_begin < wanted.allowed_end) {
    ForbidAllBut(args, wanted, begin);
  }
  RowLogits logits;
  logits.logits = ConstView(args.logits).From(begin);
  logits.vocabulary = args.vocabulary;
  logits.temperature = wanted.temperature;
  const uint64_t best = BestBelow(logits.logits, args.vocabulary, ~uint64_t{0}, memory);
  const int64_t best_id = TokenOfRank(best);
  logits.largest = logits.logits[best_id];
  if (logits.largest == -INFINITY) {
    return kEveryTokenForbidden;
  }
  if (wanted.temperature <= 0) {
    return best_id;
  }
  const KeptTokens kept = KeepTokens(wanted, logits, memory);
  return DrawToken(kept, args.rows[row].uniform, memory);
}

}  // namespace switchyard
