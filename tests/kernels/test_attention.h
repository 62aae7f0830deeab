#pragma once

#include <cstdint>
#include <vector>

#include "kernels/ops.h"
#include "tests/support/ops_memory.h"

namespace switchyard {

struct AttentionShape {
  int64_t query_groups = 1;
  int64_t kv_heads = 1;
  int64_t key_dim = 1;
  int64_t value_dim = 1;
  int64_t block_tokens = 4;
  float scale = 1;
  Weighting weighting = Weighting::kSoftmax;
};

// A sequence in a step: its last `query_tokens` of `kv_length` tokens are asked for.
struct TestSequence {
  uint64_t id = 0;
  int64_t query_tokens = 1;
  int64_t kv_length = 1;
};

// Runs the verb on queries, keys and values that depend only on (id, position), so that the same
// token can be computed in any company. Blocks are handed out in a scattered order; every slot that
// no token owns holds NaN, so that a read outside the sequence shows. One output of query_groups *
// kv_heads * value_dim for each token of the step.
std::vector<std::vector<float>> Attend(
    Ops& ops, const AttentionShape& shape, const std::vector<TestSequence>& sequences
);

}  // namespace switchyard
