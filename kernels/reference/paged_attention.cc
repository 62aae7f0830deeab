#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "kernels/check_shape.h"
#include "kernels/reference/dot.h"
#include "kernels/reference/reference_ops.h"

namespace switchyard {
namespace {

// One token of one sequence, and where its sequence's keys and values are.
struct Place {
  int64_t token = 0;
  int64_t position = 0;
  const int32_t* blocks = nullptr;
};

int64_t SlotOf(const PagedAttentionArgs& args, const Place& place, int64_t position) {
  const int64_t block_tokens = args.key_cache.dim(1);
  const int64_t block = place.blocks[position / block_tokens];
  CHECK(block >= 0 && block < args.key_cache.dim(0))
      << "block " << block << " for position " << position << "; cache "
      << args.key_cache.ToString();
  return block * block_tokens + position % block_tokens;
}

// log(1 + exp(x)) without overflow.
double Softplus(double x) {
  return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x)));
}

void Softmax(std::vector<float>& weights) {
  float largest = -std::numeric_limits<float>::infinity();
  for (const float logit : weights) {
    largest = std::max(largest, logit);
  }
  float sum = 0;
  for (float& weight : weights) {
    weight = std::exp(weight - largest);
    sum += weight;
  }
  for (float& weight : weights) {
    weight /= sum;
  }
}

// From the newest key to the oldest, with the logarithm of what is left of the stick. That one sum
// is in double: it runs over the whole context and its exponential multiplies every older key.
void BreakStick(std::vector<float>& weights) {
  double log_remainder = 0;
  for (size_t j = weights.size(); j-- > 0;) {
    const double logit = weights[j];
    weights[j] = static_cast<float>(std::exp(log_remainder - Softplus(-logit)));
    log_remainder -= Softplus(logit);
  }
}

void CheckArguments(const PagedAttentionArgs& args, TensorView out) {
  const TensorView& query = args.query;
  const TensorView& keys = args.key_cache;
  const TensorView& values = args.value_cache;
  CHECK(
      query.rank() == 4 && keys.rank() == 4 && values.rank() == 4 && args.block_tables.rank() == 2
  ) << "query "
    << query.ToString() << " keys " << keys.ToString() << " values " << values.ToString()
    << " block tables " << args.block_tables.ToString();
  const int64_t heads = query.dim(2);
  const int64_t sequences = args.block_tables.dim(0);
  CheckShape("key_cache", keys, DType::kF32, {keys.dim(0), keys.dim(1), heads, query.dim(3)});
  CheckShape("value_cache", values, DType::kF32, {keys.dim(0), keys.dim(1), heads, values.dim(3)});
  CheckElements("query_offsets", args.query_offsets, DType::kI32, sequences + 1);
  CheckElements("kv_lengths", args.kv_lengths, DType::kI32, sequences);
  CheckElements("out", out, DType::kF32, query.dim(0) * query.dim(1) * heads * values.dim(3));
  CHECK(out.elements() == 0 || out.data() != query.data()) << "out aliases query";
  if (args.weighting == Weighting::kTransformerXl) {
    const TensorView& distance_keys = args.distance_keys;
    CHECK(distance_keys.rank() == 3) << "distance keys are " << distance_keys.ToString();
    CheckShape(
        "distance_keys", distance_keys, DType::kF32, {distance_keys.dim(0), heads, query.dim(3)}
    );
  }
  const int32_t* offsets = args.query_offsets.i32();
  CHECK(offsets[0] == 0 && offsets[sequences] == query.dim(0))
      << "query offsets run from " << offsets[0] << " to " << offsets[sequences] << "; query "
      << query.ToString();
}

float LogitOf(
    const PagedAttentionArgs& args,
    const Place& place,
    const float* query,
    int64_t head,
    int64_t key
) {
  const int64_t heads = args.query.dim(2);
  const int64_t key_dim = args.query.dim(3);
  const int64_t row = SlotOf(args, place, key) * heads + head;
  float product = Dot(query, args.key_cache.f32() + row * key_dim, key_dim);
  if (args.weighting == Weighting::kTransformerXl) {
    const int64_t distance_row = (place.position - key) * heads + head;
    product += Dot(query, args.distance_keys.f32() + distance_row * key_dim, key_dim);
  }
  return args.scale * product;
}

void AttendToken(
    const PagedAttentionArgs& args, const Place& place, std::vector<float>& weights, TensorView out
) {
  const int64_t groups = args.query.dim(1);
  const int64_t heads = args.query.dim(2);
  const int64_t value_dim = args.value_cache.dim(3);
  for (int64_t row = 0; row < groups * heads; ++row) {
    const int64_t head = row % heads;
    const int64_t query_row = place.token * groups * heads + row;
    const float* query = args.query.f32() + query_row * args.query.dim(3);
    for (int64_t j = 0; j <= place.position; ++j) {
      weights[static_cast<size_t>(j)] = LogitOf(args, place, query, head, j);
    }
    if (args.weighting == Weighting::kStickBreaking) {
      BreakStick(weights);
    } else {
      Softmax(weights);
    }
    float* result = out.f32() + query_row * value_dim;
    std::fill_n(result, value_dim, 0.0F);
    for (int64_t j = 0; j <= place.position; ++j) {
      const int64_t value_row = SlotOf(args, place, j) * heads + head;
      const float* value = args.value_cache.f32() + value_row * value_dim;
      for (int64_t d = 0; d < value_dim; ++d) {
        result[d] += weights[static_cast<size_t>(j)] * value[d];
      }
    }
  }
}

}  // namespace

void ReferenceOps::PagedAttention(const PagedAttentionArgs& args, TensorView out) {
  CheckArguments(args, out);
  const int64_t max_blocks = args.block_tables.dim(1);
  for (int64_t s = 0; s < args.block_tables.dim(0); ++s) {
    const int64_t begin = args.query_offsets.i32()[s];
    const int64_t end = args.query_offsets.i32()[s + 1];
    const int64_t kv_length = args.kv_lengths.i32()[s];
    CHECK(
        begin <= end && end - begin <= kv_length && kv_length <= max_blocks * args.key_cache.dim(1)
    ) << "sequence "
      << s << " has tokens " << begin << " to " << end << " and kv length " << kv_length << " in "
      << max_blocks << " blocks of " << args.key_cache.dim(1);
    CHECK(args.weighting != Weighting::kTransformerXl || kv_length <= args.distance_keys.dim(0))
        << "kv length " << kv_length << "; distance keys " << args.distance_keys.ToString();
    for (int64_t token = begin; token < end; ++token) {
      const Place place = {
          .token = token,
          .position = kv_length - end + token,
          .blocks = args.block_tables.i32() + s * max_blocks,
      };
      row_scratch_.resize(static_cast<size_t>(place.position + 1));
      AttendToken(args, place, row_scratch_, out);
    }
  }
}

}  // namespace switchyard
