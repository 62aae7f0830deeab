#include <algorithm>
#include <cmath>
#include <numeric>

#include "tests/gpu/kernel_bench.h"

// The verbs of a step that are no products with weights.

namespace switchyard {
namespace {

constexpr int64_t kBlockTokens = 16;
constexpr int64_t kFloatBytes = 4;
constexpr int64_t kIdBytes = 4;

std::vector<int32_t> Counting(int64_t count) {
  std::vector<int32_t> values(static_cast<size_t>(count));
  std::iota(values.begin(), values.end(), 0);
  return values;
}

}  // namespace

Status KernelBench::Routing(int64_t batch) {
  const BalancedRouting routing(
      ops_, {.tokens = batch, .groups = 1, .top_k = shape_.top_k, .experts = shape_.experts}
  );
  OpsMemory memory(ops_);
  const int64_t chosen = batch * shape_.top_k;
  const TensorView scores = Activations(batch, shape_.experts).Reshaped({batch, 1, shape_.experts});
  const RouterCounters counters = {
      .tokens = memory.Zeros(DType::kI64, {kPhases, shape_.experts}),
      .gate_sum = memory.Zeros(DType::kI64, {kPhases, shape_.experts}),
      .margin_sum = memory.Zeros(DType::kI64, {kPhases, shape_.experts})};
  // Ids and gates of the chosen, and a margin.
  const int64_t result_bytes = chosen * (kIdBytes + kFloatBytes) + batch * kFloatBytes;
  RETURN_IF_ERROR(
      Add("router, choice",
          batch,
          batch * shape_.experts * kFloatBytes + result_bytes,
          [&](int64_t) {
            ops_.SelectExperts(GateKind::kSoftmaxSelected, scores, routing.grouped().routing);
          })
  );
  // Beside those the phases, the order, where each expert's part begins, and the counters.
  const int64_t counted = 3 * counters.tokens.bytes();
  const int64_t bytes = result_bytes + batch * kIdBytes + chosen * kIdBytes +
                        (shape_.experts + 1) * kIdBytes + 2 * counted;
  return Add("router, grouping and counting", batch, bytes, [&](int64_t) {
    ops_.GroupByExpert(routing.phases(), counters, routing.grouped());
  });
}

Status KernelBench::Attention(int64_t batch, Weighting weighting, const std::string& name) {
  const int64_t heads = shape_.kv_heads;
  const int64_t dim = shape_.head_dim;
  const int64_t groups = shape_.QueryGroups();
  const int64_t blocks = (options_.context + kBlockTokens - 1) / kBlockTokens;
  const int64_t cache_elements = batch * blocks * kBlockTokens * heads * dim;
  const int64_t caches =
      std::max<int64_t>(options_.rotation_bytes / (2 * cache_elements * kFloatBytes), 1);
  OpsMemory memory(ops_);
  const TensorView cache = memory.Zeros(DType::kF32, {caches, 2, cache_elements});
  PagedAttentionArgs args;
  args.query = Activations(batch * groups * heads, dim).Reshaped({batch, groups, heads, dim});
  args.block_tables = memory.Ints({batch, blocks}, Counting(batch * blocks));
  args.query_offsets = memory.Ints({batch + 1}, Counting(batch + 1));
  args.kv_lengths = memory.Ints(
      {batch},
      std::vector<int32_t>(static_cast<size_t>(batch), static_cast<int32_t>(options_.context))
  );
  args.scale = 1 / std::sqrt(static_cast<float>(dim));
  args.weighting = weighting;
  const TensorView out = memory.Zeros(DType::kF32, {batch, groups, heads, dim});
  const int64_t token_bytes = heads * dim * kFloatBytes;
  int64_t bytes = 2 * batch * options_.context * token_bytes + 2 * batch * groups * token_bytes;
  if (weighting == Weighting::kTransformerXl) {
    args.distance_keys = memory.Zeros(DType::kF32, {options_.context, heads, dim});
    bytes += options_.context * token_bytes;
  }
  return Add(name, batch, bytes, [&](int64_t i) {
    float* const keys = cache.f32() + i % caches * 2 * cache_elements;
    args.key_cache = {keys, DType::kF32, {batch * blocks, kBlockTokens, heads, dim}};
    args.value_cache = {
        keys + cache_elements, DType::kF32, {batch * blocks, kBlockTokens, heads, dim}};
    ops_.PagedAttention(args, out);
  });
}

Status KernelBench::Positions(int64_t batch) {
  const int64_t heads = shape_.kv_heads;
  const int64_t dim = shape_.head_dim;
  const int64_t query_heads = shape_.QueryGroups() * heads;
  OpsMemory memory(ops_);
  const TensorView positions = memory.Ints({batch}, Counting(batch));
  const TensorView queries = memory.Zeros(DType::kF32, {batch, query_heads, dim});
  const RopeArgs rope = {.positions = positions, .rotary_dims = shape_.RotaryDims(), .base = 10000};
  const int64_t rotated = batch * query_heads * shape_.RotaryDims();
  RETURN_IF_ERROR(
      Add("rope of the queries",
          batch,
          2 * rotated * kFloatBytes + batch * kIdBytes,
          [&](int64_t) { ops_.Rope(rope, queries); })
  );
  const TensorView key = Activations(batch * heads, dim).Reshaped({batch, heads, dim});
  const StoreKvArgs store = {
      .key = key,
      .value = key,
      .slots = positions,
      .key_cache = memory.Zeros(DType::kF32, {batch, 1, heads, dim}),
      .value_cache = memory.Zeros(DType::kF32, {batch, 1, heads, dim})};
  return Add(
      "storing keys and values",
      batch,
      4 * batch * heads * dim * kFloatBytes + batch * kIdBytes,
      [&](int64_t) { ops_.StoreKv(store); }
  );
}

Status KernelBench::Rows(int64_t batch) {
  const int64_t dim = shape_.model_dim;
  const int64_t hidden_rows = batch * shape_.top_k;
  const bool gated = shape_.kind == ModelKind::kJetMoe;
  const int64_t hidden_columns = gated ? 2 * shape_.feed_forward_dim : shape_.feed_forward_dim;
  OpsMemory memory(ops_);
  const TensorView x = memory.Zeros(DType::kF32, {batch, dim});
  const TensorView update = memory.Zeros(DType::kF32, {batch, dim});
  const TensorView hidden = memory.Zeros(DType::kF32, {hidden_rows, shape_.feed_forward_dim});
  const TensorView ids = memory.Ints({batch}, std::vector<int32_t>(static_cast<size_t>(batch)));
  const int64_t row_bytes = batch * dim * kFloatBytes;
  const Weight scale = memory.AddVector(std::vector<float>(static_cast<size_t>(dim), 1.0F));
  const NormalizeArgs norm = {
      .kind = NormKind::kRms, .weight = scale, .bias = {}, .epsilon = 1e-6F, .rows = {}};
  RETURN_IF_ERROR(Add("norm", batch, 2 * row_bytes + dim * kFloatBytes, [&](int64_t) {
    ops_.Normalize(norm, x, update);
  }));
  const TensorView before = Activations(hidden_rows, hidden_columns);
  const ActivateArgs activate = {
      .kind = gated ? ActivationKind::kSilu : ActivationKind::kRelu, .gated = gated};
  RETURN_IF_ERROR(Add("activation", batch, before.bytes() + hidden.bytes(), [&](int64_t) {
    ops_.Activate(activate, before, hidden);
  }));
  RETURN_IF_ERROR(Add("residual", batch, 3 * row_bytes, [&](int64_t) { ops_.Add(x, update); }));
  const std::vector<Weight> tables =
      Weights(WeightRole::kEmbedding, WeightLayout::kOutIn, {shape_.vocabulary_size, dim});
  return Add("embedding", batch, row_bytes + row_bytes / 2 + batch * kIdBytes, [&](int64_t i) {
    ops_.Embed(tables[static_cast<size_t>(i) % tables.size()], ids, 1, x);
  });
}

Status KernelBench::Sampling(int64_t batch, float temperature, const std::string& name) {
  const auto rows = static_cast<size_t>(batch);
  OpsMemory memory(ops_);
  const TensorView logits = memory.Floats(
      {batch, shape_.vocabulary_size}, RandomFloats(batch * shape_.vocabulary_size, 1)
  );
  std::vector<SelectTokensRow> selection(rows);
  for (size_t row = 0; row < rows; ++row) {
    selection[row].temperature = temperature;
    selection[row].seed = row;
  }
  std::vector<int32_t> ids(rows);
  SelectTokensArgs args;
  args.logits = logits;
  args.rows = selection.data();
  ASSIGN_OR_RETURN(const double seconds, timer_.Waiting([&] {
    ops_.SelectTokens(args, {.ids = ids.data()});
  }));
  rows_->push_back({.name = name, .batch = batch, .bytes = logits.bytes(), .seconds = seconds});
  return OkStatus();
}

}  // namespace switchyard
