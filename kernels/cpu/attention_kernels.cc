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
// Of several heads, so many values of one go before those of the next, which lie behind them in
// memory: one would make a single stream of the memory, two halve the traffic of the sums.
constexpr int64_t kRunValues = 2;

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

// Asks for `dim` floats at `offset` of the row `position` + kPositionsAhead, if it is known.
HWY_INLINE void PrefetchRow(
    const float* const* rows, int64_t position, int64_t count, int64_t offset, int64_t dim
) {
  constexpr int64_t kPerCacheLine = 64 / sizeof(float);
  if (position + kPositionsAhead < count) {
    const float* row = rows[position + kPositionsAhead] + offset;
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

// products[q * kTileKeys + k] = queries[q] . keys[k]
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

// Queries `query`, ... of a head by the keys from `begin` on, at most kTileKeys.
template <int64_t kQueries>
HWY_INLINE void ScoreKeys(const ScoresArgs& args, int64_t head, int64_t query, int64_t begin) {
  const int64_t count = std::min(kTileKeys, args.key_count - begin);
  const int64_t offset = head * args.dim;
  const int64_t row = head * args.query_count + query;
  const float* keys[kTileKeys];
  for (int64_t k = 0; k < kTileKeys; ++k) {
    keys[k] = args.keys[begin + std::min(k, count - 1)] + offset;
    PrefetchRow(args.keys, begin + k, query == 0 ? args.coming_count : 0, offset, args.dim);
  }
  float products[int64_t{kQueries} * kTileKeys + kLanes];
  ScoreTile<kQueries>({args.queries.Row(row), args.queries.stride}, keys, args.dim, products);
  for (int64_t q = 0; q < kQueries; ++q) {
    float* scores = args.scores.Row(row + q) + begin;
    for (int64_t k = 0; k < count; ++k) {
      const float product = products[int64_t{q} * kTileKeys + k];
      scores[k] = args.add ? scores[k] + product : product;
    }
  }
}

// Some values for queries of one head.
struct HeadValues {
  const float* const* values = nullptr;  // [count], each at least `offset` + dim floats
  int64_t count = 0;
  int64_t coming_count = 0;
  int64_t offset = 0;  // of the head in a value
  int64_t dim = 0;
  FloatRows weights;
  FloatRows sums;
};

template <int64_t kQueries, int64_t kVectors>
HWY_NOINLINE void Values(const HeadValues& args, int64_t channel) {
  const FloatTag d;
  Vector sums[kQueries][kVectors];
  for (int64_t q = 0; q < kQueries; ++q) {
    for (int64_t v = 0; v < kVectors; ++v) {
      sums[q][v] = hn::LoadU(d, args.sums.Row(q) + channel + v * kLanes);
    }
  }
  const int64_t coming_count = channel == 0 ? args.coming_count : 0;
  for (int64_t j = 0; j < args.count; ++j) {
    PrefetchRow(args.values, j, coming_count, args.offset, args.dim);
    Vector weights[kQueries];
    for (int64_t q = 0; q < kQueries; ++q) {
      weights[q] = hn::Set(d, args.weights.Row(q)[j]);
    }
    for (int64_t v = 0; v < kVectors; ++v) {
      const Vector value = hn::LoadU(d, args.values[j] + args.offset + channel + v * kLanes);
      for (int64_t q = 0; q < kQueries; ++q) {
        sums[q][v] = hn::MulAdd(weights[q], value, sums[q][v]);
      }
    }
  }
  for (int64_t q = 0; q < kQueries; ++q) {
    for (int64_t v = 0; v < kVectors; ++v) {
      hn::StoreU(sums[q][v], d, args.sums.Row(q) + channel + v * kLanes);
    }
  }
}

// The last channels, fewer than a vector.
template <int64_t kQueries>
HWY_NOINLINE void LastValues(const HeadValues& args, int64_t channel) {
  const FloatTag d;
  Vector sums[kQueries];
  for (int64_t q = 0; q < kQueries; ++q) {
    sums[q] = hn::LoadU(d, args.sums.Row(q) + channel);
  }
  for (int64_t j = 0; j < args.count; ++j) {
    const Vector value = LoadFirst(args.values[j] + args.offset + channel, args.dim - channel);
    for (int64_t q = 0; q < kQueries; ++q) {
      sums[q] = hn::MulAdd(hn::Set(d, args.weights.Row(q)[j]), value, sums[q]);
    }
  }
  for (int64_t q = 0; q < kQueries; ++q) {
    hn::StoreU(sums[q], d, args.sums.Row(q) + channel);
  }
}

template <int64_t kQueries>
void AllChannels(const HeadValues& args) {
  int64_t channel = 0;
  for (; channel + kTileVectors * kLanes <= args.dim; channel += kTileVectors * kLanes) {
    Values<kQueries, kTileVectors>(args, channel);
  }
  for (; channel + 2 * kLanes <= args.dim; channel += 2 * kLanes) {
    Values<kQueries, 2>(args, channel);
  }
  for (; channel + kLanes <= args.dim; channel += kLanes) {
    Values<kQueries, 1>(args, channel);
  }
  if (channel < args.dim) {
    LastValues<kQueries>(args, channel);
  }
}

// `count` values from `begin` on for the queries of a head from `query` on, at most two.
void AddValuesOfHead(
    const ValuesArgs& args, int64_t head, int64_t query, int64_t begin, int64_t count
) {
  const int64_t row = head * args.query_count + query;
  const HeadValues values = {
      .values = args.values + begin,
      .count = count,
      .coming_count = query == 0 ? args.coming_count - begin : 0,
      .offset = head * args.dim,
      .dim = args.dim,
      .weights = {args.weights.Row(row) + begin, args.weights.stride},
      .sums = {args.sums.Row(row), args.sums.stride},
  };
  if (query + 1 < args.query_count) {
    AllChannels<2>(values);
  } else {
    AllChannels<1>(values);
  }
}

}  // namespace

void AttentionScores(const ScoresArgs& args) {
  for (int64_t begin = 0; begin < args.key_count; begin += kTileKeys) {
    for (int64_t head = 0; head < args.heads; ++head) {
      int64_t query = 0;
      for (; query + 2 <= args.query_count; query += 2) {
        ScoreKeys<2>(args, head, query, begin);
      }
      if (query < args.query_count) {
        ScoreKeys<1>(args, head, query, begin);
      }
    }
  }
}

void AddWeightedValues(const ValuesArgs& args) {
  const int64_t step = args.heads == 1 ? args.value_count : kRunValues;
  for (int64_t begin = 0; begin < args.value_count; begin += step) {
    const int64_t count = std::min(step, args.value_count - begin);
    for (int64_t head = 0; head < args.heads; ++head) {
      for (int64_t query = 0; query < args.query_count; query += 2) {
        AddValuesOfHead(args, head, query, begin, count);
      }
    }
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
