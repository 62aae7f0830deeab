#include "tests/kernels/test_attention.h"

#include <algorithm>
#include <limits>

#include "base/check.h"

namespace switchyard {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr uint64_t kKeySeed = 1000;
constexpr uint64_t kValueSeed = 2000;
constexpr uint64_t kQuerySeed = 3000;
constexpr uint64_t kDistanceSeed = 4000;

int64_t BlocksOf(const TestSequence& sequence, const AttentionShape& shape) {
  return (sequence.kv_length + shape.block_tokens - 1) / shape.block_tokens;
}

// The host side of a step while it is put together.
struct Step {
  int64_t blocks = 1;      // one that nobody owns
  int64_t max_blocks = 1;  // of one sequence, and an unused tail
  int64_t max_kv_length = 1;
  std::vector<float> keys;
  std::vector<float> values;
  std::vector<float> queries;
  std::vector<int32_t> tables;
  std::vector<int32_t> query_offsets = {0};
  std::vector<int32_t> kv_lengths;
};

void CopyRow(
    const std::vector<float>& source,
    int64_t source_row,
    std::vector<float>& target,
    int64_t target_row,
    int64_t width
) {
  std::copy_n(source.begin() + source_row * width, width, target.begin() + target_row * width);
}

void AddSequence(
    const AttentionShape& shape, const TestSequence& sequence, int64_t& next_block, Step& step
) {
  const int64_t key_width = shape.kv_heads * shape.key_dim;
  const int64_t value_width = shape.kv_heads * shape.value_dim;
  const int64_t query_width = shape.query_groups * key_width;
  const std::vector<float> keys =
      RandomFloats(sequence.kv_length * key_width, kKeySeed + sequence.id);
  const std::vector<float> values =
      RandomFloats(sequence.kv_length * value_width, kValueSeed + sequence.id);
  const std::vector<float> queries =
      RandomFloats(sequence.kv_length * query_width, kQuerySeed + sequence.id);

  const size_t table_begin = step.tables.size();
  step.tables.resize(table_begin + static_cast<size_t>(step.max_blocks), -1);
  for (int64_t block = 0; block < BlocksOf(sequence, shape); ++block) {
    step.tables[table_begin + static_cast<size_t>(block)] = static_cast<int32_t>(next_block--);
  }
  for (int64_t position = 0; position < sequence.kv_length; ++position) {
    const auto block = static_cast<size_t>(position / shape.block_tokens);
    const int64_t slot =
        step.tables[table_begin + block] * shape.block_tokens + position % shape.block_tokens;
    CopyRow(keys, position, step.keys, slot, key_width);
    CopyRow(values, position, step.values, slot, value_width);
  }
  const int64_t first_query = (sequence.kv_length - sequence.query_tokens) * query_width;
  step.queries.insert(step.queries.end(), queries.begin() + first_query, queries.end());
  step.query_offsets.push_back(
      step.query_offsets.back() + static_cast<int32_t>(sequence.query_tokens)
  );
  step.kv_lengths.push_back(static_cast<int32_t>(sequence.kv_length));
}

Step MakeStep(const AttentionShape& shape, const std::vector<TestSequence>& sequences) {
  Step step;
  for (const TestSequence& sequence : sequences) {
    CHECK(sequence.query_tokens <= sequence.kv_length) << "sequence " << sequence.id;
    step.blocks += BlocksOf(sequence, shape);
    step.max_blocks = std::max(step.max_blocks, BlocksOf(sequence, shape) + 1);
    step.max_kv_length = std::max(step.max_kv_length, sequence.kv_length);
  }
  const int64_t slot_heads = step.blocks * shape.block_tokens * shape.kv_heads;
  step.keys.assign(static_cast<size_t>(slot_heads * shape.key_dim), kNan);
  step.values.assign(static_cast<size_t>(slot_heads * shape.value_dim), kNan);
  int64_t next_block = step.blocks - 1;
  for (const TestSequence& sequence : sequences) {
    AddSequence(shape, sequence, next_block, step);
  }
  return step;
}

}  // namespace

std::vector<std::vector<float>> Attend(
    Ops& ops, const AttentionShape& shape, const std::vector<TestSequence>& sequences
) {
  OpsMemory memory(ops);
  const Step step = MakeStep(shape, sequences);
  const int64_t tokens = step.query_offsets.back();
  const auto sequence_count = static_cast<int64_t>(sequences.size());
  const int64_t heads = shape.kv_heads;
  PagedAttentionArgs args = {
      .query = memory.Floats({tokens, shape.query_groups, heads, shape.key_dim}, step.queries),
      .key_cache =
          memory.Floats({step.blocks, shape.block_tokens, heads, shape.key_dim}, step.keys),
      .value_cache =
          memory.Floats({step.blocks, shape.block_tokens, heads, shape.value_dim}, step.values),
      .block_tables = memory.Ints({sequence_count, step.max_blocks}, step.tables),
      .query_offsets = memory.Ints({sequence_count + 1}, step.query_offsets),
      .kv_lengths = memory.Ints({sequence_count}, step.kv_lengths),
      .scale = shape.scale,
      .weighting = shape.weighting,
  };
  if (shape.weighting == Weighting::kTransformerXl) {
    const int64_t elements = step.max_kv_length * heads * shape.key_dim;
    args.distance_keys = memory.Floats(
        {step.max_kv_length, heads, shape.key_dim}, RandomFloats(elements, kDistanceSeed)
    );
  }
  const TensorView out =
      memory.Zeros(DType::kF32, {tokens, shape.query_groups, heads, shape.value_dim});
  ops.PagedAttention(args, out);

  const std::vector<float> flat = memory.ReadFloats(out);
  const auto width = static_cast<std::ptrdiff_t>(shape.query_groups * heads * shape.value_dim);
  std::vector<std::vector<float>> rows;
  for (auto begin = flat.begin(); begin != flat.end(); begin += width) {
    rows.emplace_back(begin, begin + width);
  }
  return rows;
}

}  // namespace switchyard
