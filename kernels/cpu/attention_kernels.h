#pragma once

#include <cstdint>

// The two products of attention, for the queries of some adjacent key-value heads and a run of
// positions, so that each key and value is read once for all queries of its head.

namespace switchyard {

// Queries and sums are padded with zeros to a multiple of this many floats.
inline constexpr int64_t kAttentionPadding = 16;
// Rows of few heads are far apart in a cache, so the hardware does not foresee the next; each is
// asked for this many positions ahead. More would not fit the first cache level: at the usual
// power-of-two distances the rows share a few of its sets.
inline constexpr int64_t kPositionsAhead = 8;

// Rows at one distance from each other, of float32.
struct FloatRows {
  float* data = nullptr;
  int64_t stride = 0;

  float* Row(int64_t row) const { return data + row * stride; }
};

// scores[h, q][j] = queries[h, q] . keys[j][h], or added to what is there. One vector of partial
// sums for each (query, key), channels ascending, then its lanes added pairwise: a score depends on
// nothing but its query and key. All heads of a few keys go before the next keys, so that memory is
// read in long runs.
struct ScoresArgs {
  FloatRows queries;  // [heads * query_count, dim padded]
  int64_t heads = 1;
  int64_t query_count = 0;             // of each head
  const float* const* keys = nullptr;  // [key_count, or coming_count if more], each [heads, dim]
  int64_t key_count = 0;
  int64_t coming_count = 0;  // keys to ask the memory for, those of this call included
  int64_t dim = 0;
  FloatRows scores;  // [heads * query_count, key_count]
  bool add = false;
};
void AttentionScores(const ScoresArgs& args);

// sums[h, q] += sum over j, ascending, of weights[h, q][j] * values[j][h]; one fused multiply-add
// each.
struct ValuesArgs {
  FloatRows weights;  // [heads * query_count, value_count]
  int64_t heads = 1;
  int64_t query_count = 0;               // of each head
  const float* const* values = nullptr;  // as keys above
  int64_t value_count = 0;
  int64_t coming_count = 0;  // as above
  int64_t dim = 0;
  FloatRows sums;  // [heads * query_count, dim padded]
};
void AddWeightedValues(const ValuesArgs& args);

}  // namespace switchyard
