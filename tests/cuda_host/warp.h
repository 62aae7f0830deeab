#pragma once

#include <cstdint>

#include "kernels/cuda/combine.h"
#include "tests/cuda_host/block_runner.h"

// What the lanes of a warp do together, under the stand-in.

namespace switchyard {
namespace cuda_host {

template <typename T>
struct Exchange {
  T value;
  int lane;  // whose value this lane gets
  T received;
};

template <typename T>
T ExchangeValues(T value, int lane) {
  Exchange<T> exchange = {value, lane & (kWarpThreads - 1), value};
  BlockRunner::Current()->runner->WarpTogether(
      [](void* const* slots) {
        for (int i = 0; i < kWarpThreads; ++i) {
          auto* mine = static_cast<Exchange<T>*>(slots[i]);
          mine->received = static_cast<Exchange<T>*>(slots[mine->lane])->value;
        }
      },
      &exchange
  );
  return exchange.received;
}

inline int CurrentLane() {
  return BlockRunner::Current()->linear % kWarpThreads;
}

// Runs one mma.m16n8k16 over the fragments of all lanes.
struct MatrixFragments {
  float* d;
  const uint32_t* a;
  const uint32_t* b;
};
void MultiplyFragments(void* const* slots);

}  // namespace cuda_host

template <typename T>
T ShuffleXor(T value, int mask) {
  return cuda_host::ExchangeValues(value, cuda_host::CurrentLane() ^ mask);
}
template <typename T>
T ShuffleFrom(T value, int lane) {
  return cuda_host::ExchangeValues(value, lane);
}

inline uint32_t Ballot(bool vote) {
  struct Vote {
    bool vote;
    uint32_t all;
  };
  Vote mine = {vote, 0};
  cuda_host::BlockRunner::Current()->runner->WarpTogether(
      [](void* const* slots) {
        uint32_t all = 0;
        for (int i = 0; i < cuda_host::kWarpThreads; ++i) {
          all |= (static_cast<Vote*>(slots[i])->vote ? 1U : 0U) << i;
        }
        for (int i = 0; i < cuda_host::kWarpThreads; ++i) {
          static_cast<Vote*>(slots[i])->all = all;
        }
      },
      &mine
  );
  return mine.all;
}

// One exchange instead of five for each value; the same steps in the same order. A butterfly leaves
// the same bits in every lane, as long as `combine` commutes.
template <typename T, int kCount, typename Combine>
void ReduceValues(T (&values)[kCount], Combine /*combine*/) {
  cuda_host::BlockRunner::Current()->runner->WarpTogether(
      [](void* const* slots) {
        for (int i = 0; i < kCount; ++i) {
          T reduced[cuda_host::kWarpThreads];
          for (int lane = 0; lane < cuda_host::kWarpThreads; ++lane) {
            reduced[lane] = static_cast<T*>(slots[lane])[i];
          }
          for (int width = cuda_host::kWarpThreads / 2; width > 0; width /= 2) {
            for (int lane = 0; lane < width; ++lane) {
              reduced[lane] = Combine()(reduced[lane], reduced[lane + width]);
            }
          }
          for (int lane = 0; lane < cuda_host::kWarpThreads; ++lane) {
            static_cast<T*>(slots[lane])[i] = reduced[0];
          }
        }
      },
      values
  );
}

template <typename T, int kCount>
void WarpSum(T (&values)[kCount]) {
  ReduceValues(values, Sum());
}

template <typename T, typename Combine>
T WarpReduce(T value, Combine combine) {
  T values[1] = {value};
  ReduceValues(values, combine);
  return values[0];
}

inline void MultiplyAccumulate(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  cuda_host::MatrixFragments fragments = {d, a, b};
  cuda_host::BlockRunner::Current()->runner->WarpTogether(
      &cuda_host::MultiplyFragments, &fragments
  );
}

}  // namespace switchyard
