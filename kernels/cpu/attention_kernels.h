#pragma once

#include <cstdint>

// The two products of attention, for the queries that share one key-value head and a run of its
// positions, so that each key and value is read once for all of them.

namespace switchyard {

// Queries and sums are padded with zeros to a multiple of this many floats.
inline constexpr int64_t kAttentionPadding = 16;
// Rows of a head are far apart in a cache, so the hardware does not foresee the next; each is asked
// for this many positions ahead. More would not fit the first cache level: at the usual
// power-of-two distances the rows share a few of its sets.
inline constexpr int64_t kPositionsAhead = 8;

// Rows at one distance from each other, of float32.
struct FloatRows {
  float* data = nullptr;
  int64_t stride = 0;

  float* Row(int64_t row) const { return data + row * stride; }
};

// scores[q][j] = queries[q] . keys[j], or added to what is there. One vector of partial sums for
// each (query, key), channels ascending, then its lanes added pairwise: a score depends on nothing
// but its query and key.
struct ScoresArgs {
  FloatRows queries;  // [query_count, dim padded]
  int64_t query_count = 0;
  const float* const* keys = nullptr;  // [coming_count], each [dim]
  int64_t key_count = 0;
  int64_t coming_count = 0;  // keys to ask the memory for, after those of this call
  int64_t dim = 0;
  FloatRows scores;  // [query_count, key_count]
  bool add = false;
};
void AttentionScores(const ScoresArgs& args);

// sums[q] += sum over j, ascending, of weights[q][j] * values[j]; one fused multiply-add each.
struct ValuesArgs {
  FloatRows weights;  // [query_count, value_count]
  int64_t query_count = 0;
  const float* const* values = nullptr;  // [coming_count], each [dim]
  int64_t value_count = 0;
  int64_t coming_count = 0;  // as above
  int64_t dim = 0;
  FloatRows sums;  // [query_count, dim padded]
};
void AddWeightedValues(const ValuesArgs& args);

}  // namespace switchyard
