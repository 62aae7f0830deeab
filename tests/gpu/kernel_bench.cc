#include "tests/gpu/kernel_bench.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace switchyard {
namespace {

constexpr int64_t kFloatBytes = 4;
constexpr int64_t kWeightBytes = 2;  // BF16

// Room for the largest weight and the largest activations.
int64_t PoolElements(const ModelShape& shape) {
  int64_t largest = 0;
  for (const NamedShape& tensor : TensorsOf(shape)) {
    int64_t elements = 1;
    for (const int64_t size : tensor.shape) {
      elements *= size;
    }
    largest = std::max(largest, elements);
  }
  return largest;
}

int64_t RowsOf(RowOf rows, const BalancedRoutingShape& routing) {
  switch (rows) {
    case RowOf::kToken:
      return routing.tokens;
    case RowOf::kGroup:
      return routing.tokens * routing.groups;
    case RowOf::kAssignment:
      break;
  }
  return routing.tokens * routing.groups * routing.top_k;
}

}  // namespace

KernelBench::KernelBench(
    Ops& ops, const ModelShape& shape, const KernelBenchOptions& options, RandomPool pool
)
    : ops_(ops),
      shape_(shape),
      options_(options),
      pool_(std::move(pool)),
      timer_(ops, options.timer) {}

StatusOr<std::unique_ptr<KernelBench>> KernelBench::Create(
    Ops& ops, const ModelShape& shape, const KernelBenchOptions& options
) {
  const auto deviation = static_cast<float>(1 / std::sqrt(static_cast<double>(shape.model_dim)));
  ASSIGN_OR_RETURN(RandomPool pool, RandomPool::Create(ops, PoolElements(shape), deviation));
  return std::unique_ptr<KernelBench>(new KernelBench(ops, shape, options, std::move(pool)));
}

Status KernelBench::Measure(int64_t batch, std::vector<KernelRow>& rows) {
  rows_ = &rows;
  RETURN_IF_ERROR(Products(batch));
  RETURN_IF_ERROR(Routing(batch));
  RETURN_IF_ERROR(Attention(batch, Weighting::kSoftmax, "attention, softmax"));
  RETURN_IF_ERROR(Attention(batch, Weighting::kTransformerXl, "attention, transformer-xl"));
  RETURN_IF_ERROR(Attention(batch, Weighting::kStickBreaking, "attention, stick-breaking"));
  RETURN_IF_ERROR(Positions(batch));
  RETURN_IF_ERROR(Rows(batch));
  RETURN_IF_ERROR(Sampling(batch, 0, "sampling, greedy, with its copies"));
  return Sampling(batch, 0.8F, "sampling, temperature, with its copies");
}

Status KernelBench::Add(
    const std::string& name, int64_t batch, int64_t bytes, const std::function<void(int64_t)>& call
) {
  ASSIGN_OR_RETURN(const double seconds, timer_.Queued(bytes, call));
  rows_->push_back({.name = name, .batch = batch, .bytes = bytes, .seconds = seconds});
  return OkStatus();
}

std::vector<Weight> KernelBench::Weights(
    WeightRole role, WeightLayout layout, std::initializer_list<int64_t> shape
) {
  const int64_t bytes = TensorView(nullptr, DType::kBF16, shape).bytes();
  const int64_t count = std::max<int64_t>(options_.rotation_bytes / bytes, 1);
  std::vector<Weight> weights;
  for (int64_t i = 0; i < count; ++i) {
    weights.push_back(ops_.AddWeight(
        {.role = role,
         .layout = layout,
         .data = TensorView(pool_.Part(i), DType::kBF16, shape),
         .name = "bench",
         .place = TensorPlace::kBackend}
    ));
  }
  return weights;
}

TensorView KernelBench::Activations(int64_t rows, int64_t columns) const {
  return TensorView(pool_.Part(1), DType::kF32, {rows, columns});
}

Status KernelBench::Products(int64_t batch) {
  const int64_t width = shape_.kv_heads * shape_.head_dim;
  RETURN_IF_ERROR(Dense("dense, key or value", batch, width));
  RETURN_IF_ERROR(Dense("dense, feed-forward router", batch, shape_.experts));
  RETURN_IF_ERROR(Dense("dense, logits", batch, shape_.vocabulary_size));
  for (const ExpertProduct& product : ExpertProducts(batch)) {
    RETURN_IF_ERROR(Experts(product));
  }
  return OkStatus();
}

Status KernelBench::Dense(const std::string& name, int64_t batch, int64_t out_features) {
  const int64_t in_features = shape_.model_dim;
  OpsMemory memory(ops_);
  const std::vector<Weight> weights =
      Weights(WeightRole::kDense, WeightLayout::kOutIn, {out_features, in_features});
  const TensorView out = memory.Zeros(DType::kF32, {batch, out_features});
  const TensorView input = Activations(batch, in_features);
  const int64_t bytes = out_features * in_features * kWeightBytes +
                        batch * (in_features + out_features) * kFloatBytes;
  return Add(name, batch, bytes, [&](int64_t i) {
    const Weight& weight = weights[static_cast<size_t>(i) % weights.size()];
    ops_.MatMul({.weight = weight, .bias = {}}, input, out);
  });
}

std::vector<KernelBench::ExpertProduct> KernelBench::ExpertProducts(int64_t batch) const {
  const bool is_jetmoe = shape_.kind == ModelKind::kJetMoe;
  const BalancedRoutingShape attention = {
      .tokens = batch,
      .groups = shape_.RouterGroups(),
      .top_k = shape_.attention_top_k,
      .experts = shape_.attention_experts};
  const BalancedRoutingShape feed_forward = {
      .tokens = batch, .groups = 1, .top_k = shape_.top_k, .experts = shape_.experts};
  const int64_t width = shape_.kv_heads * shape_.head_dim;
  const int64_t dim = shape_.model_dim;
  const int64_t hidden = shape_.feed_forward_dim;
  const WeightLayout layout = is_jetmoe ? WeightLayout::kOutIn : WeightLayout::kInOut;
  const ExpertProduct up = {
      "experts, feed-forward up",
      feed_forward,
      dim,
      is_jetmoe ? 2 * hidden : hidden,
      layout,
      RowOf::kToken,
      RowOf::kAssignment};
  const ExpertProduct down = {
      "experts, feed-forward down",
      feed_forward,
      hidden,
      dim,
      layout,
      RowOf::kAssignment,
      RowOf::kToken};
  if (is_jetmoe) {
    return {
        {"experts, MoA query", attention, dim, width, layout, RowOf::kToken, RowOf::kAssignment},
        {"experts, MoA output", attention, width, dim, layout, RowOf::kAssignment, RowOf::kToken},
        up,
        down};
  }
  const int64_t head_dim = shape_.head_dim;
  return {
      {"experts, SwitchHead value", attention, dim, head_dim, layout, RowOf::kToken, RowOf::kGroup},
      {"experts, SwitchHead output",
       attention,
       head_dim,
       dim,
       layout,
       RowOf::kGroup,
       RowOf::kToken},
      up,
      down};
}

std::vector<std::unique_ptr<BalancedRouting>> KernelBench::DisjointRoutings(
    BalancedRoutingShape shape
) const {
  const int64_t chosen = shape.tokens * shape.top_k;
  std::vector<std::unique_ptr<BalancedRouting>> routings;
  do {
    routings.push_back(std::make_unique<BalancedRouting>(ops_, shape));
    shape.first += chosen;
  } while (shape.first + chosen <= shape.experts);
  return routings;
}

Status KernelBench::Experts(const ExpertProduct& product) {
  OpsMemory memory(ops_);
  const auto routings = DisjointRoutings(product.routing);
  const int64_t experts = product.routing.groups * product.routing.experts;
  const bool out_first = product.layout == WeightLayout::kOutIn;
  const std::vector<Weight> weights = Weights(
      WeightRole::kExpertStack,
      product.layout,
      {experts,
       out_first ? product.out_features : product.in_features,
       out_first ? product.in_features : product.out_features}
  );
  const int64_t in_rows = RowsOf(product.input_rows, product.routing);
  const int64_t out_rows = RowsOf(product.output_rows, product.routing);
  const TensorView out = memory.Zeros(DType::kF32, {out_rows, product.out_features});
  ExpertMatMulArgs args;
  args.input = Activations(in_rows, product.in_features);
  args.input_rows = product.input_rows;
  args.output_rows = product.output_rows;
  args.gated = product.output_rows != RowOf::kAssignment;
  const int64_t bytes =
      routings[0]->touched_experts() * product.in_features * product.out_features * kWeightBytes +
      (in_rows * product.in_features + out_rows * product.out_features) * kFloatBytes;
  return Add(product.name, product.routing.tokens, bytes, [&](int64_t i) {
    const auto call = static_cast<size_t>(i);
    args.grouped = routings[call % routings.size()]->grouped();
    args.weight = weights[call / routings.size() % weights.size()];
    ops_.ExpertMatMul(args, out);
  });
}

}  // namespace switchyard
