#include "kernels/cpu/attention_task.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/check.h"
#include "kernels/cpu/row_kernels.h"

namespace switchyard {
namespace {

// So many keys of a usual head fill the first cache level.
constexpr int64_t kPositionsPerTile = 64;
constexpr int64_t kRowsPerTile = kPositionsPerTile + kPositionsAhead;

int64_t RoundedUp(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

// Replaces products by stick-breaking weights, from the newest key to the oldest. The remainder is
// in double: it is a product over the whole context.
void BreakStick(float scale, float* products, int64_t count) {
  double remainder = 1;
  for (int64_t j = count; j-- > 0;) {
    const double logit = scale * products[j];
    const double small = std::exp(-std::abs(logit));
    const double broken = (logit < 0 ? small : 1.0) / (1.0 + small);
    const double kept = (logit < 0 ? 1.0 : small) / (1.0 + small);
    products[j] = static_cast<float>(remainder * broken);
    remainder *= kept;
  }
}

}  // namespace

AttentionTask::AttentionTask(
    const PagedAttentionArgs& args, const AttentionTile& tile, HeadRange range, Scratch& scratch
)
    : args_(args),
      tile_(tile),
      range_(range),
      groups_(args.query.dim(1)),
      heads_(args.query.dim(2)),
      length_(LengthAt(tile.token_end - 1)) {
  const int64_t rows = (tile.token_end - tile.token_begin) * RowsOfToken();
  queries_.stride = RoundedUp(args.query.dim(3), kAttentionPadding);
  scores_.stride = RoundedUp(length_, kSoftmaxPadding);
  sums_.stride = RoundedUp(args.value_cache.dim(3), kAttentionPadding);
  const bool keep_rows = tile.token_end - tile.token_begin > 1;
  CHECK(!keep_rows || range.end - range.begin == 1) << "several tokens and several heads";
  const int64_t kept_floats =
      keep_rows ? kPositionsPerTile * std::max(queries_.stride, sums_.stride) : 0;
  float* floats =
      scratch.For<float>(kept_floats + rows * (queries_.stride + scores_.stride + sums_.stride));
  kept_ = keep_rows ? floats : nullptr;
  queries_.data = floats + kept_floats;
  scores_.data = queries_.Row(rows);
  sums_.data = scores_.Row(rows);
}

int64_t AttentionTask::LengthAt(int64_t token) const {
  const int64_t last_token = args_.query_offsets.i32()[tile_.sequence + 1] - 1;
  return args_.kv_lengths.i32()[tile_.sequence] - (last_token - token);
}

void AttentionTask::Run(TensorView out) {
  LoadQueries();
  for (int64_t position = 0; position < length_; position += kPositionsPerTile) {
    Score(position);
  }
  Weigh();
  std::fill(sums_.data, sums_.Row(LocalRow(tile_.token_end)), 0.0F);
  for (int64_t position = 0; position < length_; position += kPositionsPerTile) {
    AddValues(position);
  }
  StoreSums(out);
}

void AttentionTask::FindRows(
    const TensorView& cache, int64_t position, int64_t count, const float** rows
) const {
  const int64_t block_tokens = cache.dim(1);
  const int32_t* blocks = args_.block_tables.i32() + tile_.sequence * args_.block_tables.dim(1);
  const int64_t token_floats = heads_ * cache.dim(3);
  const float* head = cache.f32() + range_.begin * cache.dim(3);
  for (int64_t i = 0; i < count;) {
    const int64_t block = blocks[(position + i) / block_tokens];
    CHECK(block >= 0 && block < cache.dim(0))
        << "block " << block << " for position " << position + i << "; cache " << cache.ToString();
    const int64_t first = (position + i) % block_tokens;
    const int64_t end = std::min(count, i + block_tokens - first);
    for (int64_t slot = block * block_tokens + first; i < end; ++i, ++slot) {
      rows[i] = head + slot * token_floats;
    }
  }
}

// Rows for keys `distance`, `distance` - 1, ... tokens back.
void AttentionTask::FindDistanceRows(int64_t distance, int64_t count, const float** rows) const {
  const int64_t dim = args_.distance_keys.dim(2);
  for (int64_t i = 0; i < count; ++i) {
    rows[i] = args_.distance_keys.f32() + ((distance - i) * heads_ + range_.begin) * dim;
  }
}

// For several tokens: rows of a cache lie at power-of-two distances, where they push each other out
// of the first cache level, so they are read once and kept side by side.
void AttentionTask::KeepRows(int64_t dim, int64_t count, const float** rows) const {
  for (int64_t i = 0; i < count; ++i) {
    float* kept = kept_ + i * dim;
    std::memcpy(kept, rows[i], static_cast<size_t>(dim) * sizeof(float));
    rows[i] = kept;
  }
}

void AttentionTask::LoadQueries() {
  const int64_t dim = args_.query.dim(3);
  float* padded = queries_.data;
  for (int64_t token = tile_.token_begin; token < tile_.token_end; ++token) {
    for (int64_t head = range_.begin; head < range_.end; ++head) {
      for (int64_t group = 0; group < groups_; ++group, padded += queries_.stride) {
        const float* query = args_.query.f32() + ((token * groups_ + group) * heads_ + head) * dim;
        std::memcpy(padded, query, static_cast<size_t>(dim) * sizeof(float));
        std::fill(padded + dim, padded + queries_.stride, 0.0F);
      }
    }
  }
}

void AttentionTask::Score(int64_t position) {
  const float* keys[kRowsPerTile];
  const int64_t known = std::min(kRowsPerTile, length_ - position);
  FindRows(args_.key_cache, position, known, keys);
  if (kept_ != nullptr) {
    KeepRows(args_.key_cache.dim(3), std::min(known, kPositionsPerTile), keys);
  }
  for (int64_t token = tile_.token_begin; token < tile_.token_end; ++token) {
    const int64_t length = LengthAt(token);
    if (length <= position) {
      continue;
    }
    ScoresArgs scores = {
        .queries = {queries_.Row(LocalRow(token)), queries_.stride},
        .heads = range_.end - range_.begin,
        .query_count = groups_,
        .keys = keys,
        .key_count = std::min(kPositionsPerTile, length - position),
        .coming_count = kept_ == nullptr ? known : 0,
        .dim = args_.query.dim(3),
        .scores = {scores_.Row(LocalRow(token)) + position, scores_.stride},
    };
    AttentionScores(scores);
    if (args_.weighting == Weighting::kTransformerXl) {
      const float* distance_keys[kPositionsPerTile];
      FindDistanceRows(length - 1 - position, scores.key_count, distance_keys);
      scores.keys = distance_keys;
      scores.coming_count = 0;
      scores.add = true;
      AttentionScores(scores);
    }
  }
}

void AttentionTask::Weigh() {
  for (int64_t token = tile_.token_begin; token < tile_.token_end; ++token) {
    const int64_t length = LengthAt(token);
    for (int64_t row = LocalRow(token); row < LocalRow(token + 1); ++row) {
      float* products = scores_.Row(row);
      if (args_.weighting == Weighting::kStickBreaking) {
        BreakStick(args_.scale, products, length);
        continue;
      }
      const float sum = ExponentialsRow(args_.scale, products, length);
      for (int64_t j = 0; j < length; ++j) {
        products[j] /= sum;
      }
    }
  }
}

void AttentionTask::AddValues(int64_t position) {
  const float* values[kRowsPerTile];
  const int64_t known = std::min(kRowsPerTile, length_ - position);
  FindRows(args_.value_cache, position, known, values);
  if (kept_ != nullptr) {
    KeepRows(args_.value_cache.dim(3), std::min(known, kPositionsPerTile), values);
  }
  for (int64_t token = tile_.token_begin; token < tile_.token_end; ++token) {
    const int64_t length = LengthAt(token);
    if (length <= position) {
      continue;
    }
    AddWeightedValues({
        .weights = {scores_.Row(LocalRow(token)) + position, scores_.stride},
        .heads = range_.end - range_.begin,
        .query_count = groups_,
        .values = values,
        .value_count = std::min(kPositionsPerTile, length - position),
        .coming_count = kept_ == nullptr ? known : 0,
        .dim = args_.value_cache.dim(3),
        .sums = {sums_.Row(LocalRow(token)), sums_.stride},
    });
  }
}

void AttentionTask::StoreSums(TensorView out) const {
  const int64_t dim = args_.value_cache.dim(3);
  const float* sums = sums_.data;
  for (int64_t token = tile_.token_begin; token < tile_.token_end; ++token) {
    for (int64_t head = range_.begin; head < range_.end; ++head) {
      for (int64_t group = 0; group < groups_; ++group, sums += sums_.stride) {
        float* result = out.f32() + ((token * groups_ + group) * heads_ + head) * dim;
        std::memcpy(result, sums, static_cast<size_t>(dim) * sizeof(float));
      }
    }
  }
}

}  // namespace switchyard
