#include "kernels/cpu/attention_kernels.h"

#include <algorithm>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/attention_kernels.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h, which compiles all that follows once for each instruction set.
#include "hwy/cache_control.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace switchyard {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using FloatTag = hn::ScalableTag<float>;
using Vector = hn::Vec<FloatTag>;

constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(FloatTag()));
static_assert(kAttentionPadding % kLanes == 0);

// Register tiles: queries of a pair by keys, and queries of a pair by vectors of a value.
constexpr int64_t kTileKeys = HWY_TARGET <= HWY_AVX3 ? 8 : 4;
constexpr int64_t kTileVectors = HWY_TARGET <= HWY_AVX3 ? 8 : 4;

// The first `count` floats, zeros after them; touches no memory behind them.
HWY_INLINE Vector LoadFirst(const float* from, int64_t count) {
#if HWY_TARGET <= HWY_AVX2
  const FloatTag d;
  return hn::MaskedLoad(hn::FirstN(d, static_cast<size_t>(count)), d, from);
#else
  float padded[kLanes] = {};
  std::memcpy(padded, from, static_cast<size_t>(count) * sizeof(float));
  return hn::LoadU(FloatTag(), padded);
#endif
}

// Asks for the row `position` + kPositionsAhead, if it is known.
HWY_INLINE void PrefetchRow(
    const float* const* rows, int64_t position, int64_t count, int64_t dim
) {
  constexpr int64_t kPerCacheLine = 64 / sizeof(float);
  if (position + kPositionsAhead < count) {
    const float* row = rows[position + kPositionsAhead];
    for (int64_t c = 0; c < dim; c += kPerCacheLine) {
      hwy::Prefetch(row + c);
    }
  }
}

// Lane i of the result is the sum of the lanes of vectors[i], added pairwise, neighbours first.
template <int64_t kCount, int64_t kWidth>
HWY_INLINE Vector SumEach(const Vector* vectors) {
#if HWY_TARGET != HWY_SCALAR
  if constexpr (kWidth > 1) {
    constexpr int64_t kHalf = (kCount + 1) / 2;
    Vector halves[kHalf];
    for (int64_t i = 0; i < kHalf; ++i) {
      const Vector a = vectors[int64_t{2} * i];
      const Vector b = vectors[2 * i + 1 < kCount ? 2 * i + 1 : 2 * i];
      halves[i] = hn::Add(hn::ConcatEven(FloatTag(), b, a), hn::ConcatOdd(FloatTag(), b, a));
    }
    return SumEach<kHalf, kWidth / 2>(halves);
  }
#endif
  return vectors[0];
}

template <int64_t kCount>
HWY_INLINE void StoreSums(const Vector* vectors, float* sums) {
  constexpr int64_t kGroup = kCount < kLanes ? kCount : kLanes;
  hn::StoreU(SumEach<kGroup, kLanes>(vectors), FloatTag(), sums);
  if constexpr (kCount > kGroup) {
    StoreSums<kCount - kGroup>(vectors + kGroup, sums + kGroup);
  }
}

// Scores of kTileKeys keys at `keys` for queries from `query` on; sums[q * kTileKeys + key].
template <int64_t kQueries>
HWY_INLINE void ScoreTile(
    const FloatRows& queries, const float* const* keys, int64_t dim, float* products
) {
  const FloatTag d;
  Vector sums[kQueries * kTileKeys];
  for (int64_t i = 0; i < kQueries * kTileKeys; ++i) {
    sums[i] = hn::Zero(d);
  }
  int64_t c = 0;
  for (; c + kLanes <= dim; c += kLanes) {
    Vector query[kQueries];
    for (int64_t q = 0; q < kQueries; ++q) {
      query[q] = hn::LoadU(d, queries.Row(q) + c);
    }
    for (int64_t k = 0; k < kTileKeys; ++k) {
      const Vector key = hn::LoadU(d, keys[k] + c);
      for (int64_t q = 0; q < kQueries; ++q) {
        sums[q * kTileKeys + k] = hn::MulAdd(key, query[q], sums[q * kTileKeys + k]);
      }
    }
  }
  if (c < dim) {
    for (int64_t k = 0; k < kTileKeys; ++k) {
      const Vector key = LoadFirst(keys[k] + c, dim - c);
      for (int64_t q = 0; q < kQueries; ++q) {
        const Vector query = hn::LoadU(d, queries.Row(q) + c);
        sums[q * kTileKeys + k] = hn::MulAdd(key, query, sums[q * kTileKeys + k]);
      }
    }
  }
  StoreSums<kQueries * kTileKeys>(sums, products);
}

template <int64_t kQueries>
HWY_NOINLINE void Scores(const ScoresArgs& args, int64_t query) {
  const FloatRows queries = {args.queries.Row(query), args.queries.stride};
  for (int64_t begin = 0; begin < args.key_count; begin += kTileKeys) {
    const int64_t count = std::min(kTileKeys, args.key_count - begin);
    const float* keys[kTileKeys];
    for (int64_t k = 0; k < kTileKeys; ++k) {
      keys[k] = args.keys[begin + std::min(k, count - 1)];
      PrefetchRow(args.keys, begin + k, query == 0 ? args.coming_count : 0, args.dim);
    }
    float products[int64_t{kQueries} * kTileKeys + kLanes];
    ScoreTile<kQueries>(queries, keys, args.dim, products);
    for (int64_t q = 0; q < kQueries; ++q) {
      float* scores = args.scores.Row(query + q) + begin;
      for (int64_t k = 0; k < count; ++k) {
        const float product = products[int64_t{q} * kTileKeys + k];
        scores[k] = args.add ? scores[k] + product : product;
      }
    }
  }
}

template <int64_t kQueries, int64_t kVectors>
HWY_NOINLINE void Values(const ValuesArgs& args, int64_t query, int64_t channel) {
  const FloatTag d;
  Vector sums[kQueries][kVectors];
  for (int64_t q = 0; q < kQueries; ++q) {
    for (int64_t v = 0; v < kVectors; ++v) {
      sums[q][v] = hn::LoadU(d, args.sums.Row(query + q) + channel + v * kLanes);
    }
  }
  const bool first = query == 0 && channel == 0;
  for (int64_t j = 0; j < args.value_count; ++j) {
    PrefetchRow(args.values, j, first ? args.coming_count : 0, args.dim);
    Vector weights[kQueries];
    for (int64_t q = 0; q < kQueries; ++q) {
      weights[q] = hn::Set(d, args.weights.Row(query + q)[j]);
    }
    for (int64_t v = 0; v < kVectors; ++v) {
      const Vector value = hn::LoadU(d, args.values[j] + channel + v * kLanes);
      for (int64_t q = 0; q < kQueries; ++q) {
        sums[q][v] = hn::MulAdd(weights[q], value, sums[q][v]);
      }
    }
  }
  for (int64_t q = 0; q < kQueries; ++q) {
    for (int64_t v = 0; v < kVectors; ++v) {
      hn::StoreU(sums[q][v], d, args.sums.Row(query + q) + channel + v * kLanes);
    }
  }
}

// The last channels, fewer than a vector.
template <int64_t kQueries>
HWY_NOINLINE void LastValues(const ValuesArgs& args, int64_t query, int64_t channel) {
  const FloatTag d;
  Vector sums[kQueries];
  for (int64_t q = 0; q < kQueries; ++q) {
    sums[q] = hn::LoadU(d, args.sums.Row(query + q) + channel);
  }
  for (int64_t j = 0; j < args.value_count; ++j) {
    const Vector value = LoadFirst(args.values[j] + channel, args.dim - channel);
    for (int64_t q = 0; q < kQueries; ++q) {
      sums[q] = hn::MulAdd(hn::Set(d, args.weights.Row(query + q)[j]), value, sums[q]);
    }
  }
  for (int64_t q = 0; q < kQueries; ++q) {
    hn::StoreU(sums[q], d, args.sums.Row(query + q) + channel);
  }
}

template <int64_t kQueries>
void AllValues(const ValuesArgs& args, int64_t query) {
  int64_t channel = 0;
  for (; channel + kTileVectors * kLanes <= args.dim; channel += kTileVectors * kLanes) {
    Values<kQueries, kTileVectors>(args, query, channel);
  }
  for (; channel + 2 * kLanes <= args.dim; channel += 2 * kLanes) {
    Values<kQueries, 2>(args, query, channel);
  }
  for (; channel + kLanes <= args.dim; channel += kLanes) {
    Values<kQueries, 1>(args, query, channel);
  }
  if (channel < args.dim) {
    LastValues<kQueries>(args, query, channel);
  }
}

}  // namespace

void AttentionScores(const ScoresArgs& args) {
  int64_t query = 0;
  for (; query + 2 <= args.query_count; query += 2) {
    Scores<2>(args, query);
  }
  if (query < args.query_count) {
    Scores<1>(args, query);
  }
}

void AddWeightedValues(const ValuesArgs& args) {
  int64_t query = 0;
  for (; query + 2 <= args.query_count; query += 2) {
    AllValues<2>(args, query);
  }
  if (query < args.query_count) {
    AllValues<1>(args, query);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace switchyard
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace switchyard {

HWY_EXPORT(AttentionScores);
HWY_EXPORT(AddWeightedValues);

void AttentionScores(const ScoresArgs& args) {
  HWY_DYNAMIC_DISPATCH(AttentionScores)(args);
}

void AddWeightedValues(const ValuesArgs& args) {
  HWY_DYNAMIC_DISPATCH(AddWeightedValues)(args);
}

}  // namespace switchyard
#endif
