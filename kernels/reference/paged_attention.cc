#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "kernels/check_paged_attention.h"
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
  CheckPagedAttention(args, out);
  const int64_t max_blocks = args.block_tables.dim(1);
  for (int64_t s = 0; s < args.block_tables.dim(0); ++s) {
    const int64_t begin = args.query_offsets.i32()[s];
    const int64_t end = args.query_offsets.i32()[s + 1];
    const int64_t kv_length = args.kv_lengths.i32()[s];
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
