#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <tuple>
#include <vector>

#include "base/check.h"
#include "engine/model/families/switch_head_loading.h"
#include "engine/model/moa_attention.h"
#include "engine/model/weight_files.h"
#include "kernels/backend.h"
#include "tests/support/ops_memory.h"
#include "tests/support/test_devices.h"

// The published attention modules on their own: what they make of an input, whole and through the
// cache in pieces.

namespace switchyard {
namespace {

using ::testing::ElementsAreArray;

constexpr double kTolerance = 2e-4;
constexpr double kGateTolerance = 2e-5;
constexpr int64_t kMaxTokens = 64;
constexpr int64_t kBlockTokens = 4;
constexpr int kPrompts = 3;

std::filesystem::path FolderOf(const std::string& name) {
  return std::filesystem::path(SWITCHYARD_TEST_DATA_DIR) / name;
}

template <typename Value>
Value Checked(StatusOr<Value> value) {
  CHECK(value.ok()) << MessageOf(value.status());
  return *std::move(value);
}

ModelConfig SwitchHeadConfig(ConfigReader& config) {
  ModelConfig model;
  model.model_dim = config.Positive({"d_model"});
  model.context_tokens = kMaxTokens;
  model.layers = model.stored_layers = 1;
  AttentionConfig& attention = model.attention;
  attention.kind = AttentionKind::kSwitchHead;
  attention.kv_heads = config.Positive({"n_heads"});
  attention.key_dim = attention.value_dim = config.Positive({"d_head"});
  attention.router = {
      .groups = attention.kv_heads,
      .experts = config.Positive({"n_experts"}),
      .top_k = config.Positive({"moe_k"}),
      .gate = GateKind::kSigmoid,
  };
  attention.value_routed = attention.output_routed = true;
  attention.value_stream = StreamForm::kRaw;  // the module has an input of its own for the values
  attention.scale = static_cast<float>(1 / std::sqrt(static_cast<double>(attention.key_dim)));
  attention.positions = PositionKind::kTransformerXl;
  if (config.TextOr({"cls"}, "") == "SwitchHeadRope") {
    attention.positions = PositionKind::kRotary;
    attention.rotary_dims = attention.key_dim / 2 / 2 * 2;
  }
  return model;
}

ModelConfig MoaConfig(ConfigReader& config) {
  ModelConfig model;
  model.model_dim = config.Positive({"embed_dim"});
  model.context_tokens = kMaxTokens;
  model.layers = model.stored_layers = 1;
  AttentionConfig& attention = model.attention;
  attention.kind = AttentionKind::kMoa;
  attention.kv_heads = 1;
  attention.key_dim = attention.value_dim = config.Positive({"head_dim"});
  attention.router = {
      .groups = 1,
      .experts = config.Positive({"num_expert"}),
      .top_k = config.Positive({"num_heads"}),
      .gate = GateKind::kSoftmaxAll,
  };
  attention.scale = static_cast<float>(1 / std::sqrt(static_cast<double>(attention.key_dim)));
  attention.positions = PositionKind::kNone;
  return model;
}

StatusOr<std::unique_ptr<Attention>> LoadMoa(const LayerLoader& loader) {
  const AttentionConfig& config = loader.model.attention;
  const int64_t model_dim = loader.model.model_dim;
  const int64_t width = config.key_dim;
  WeightLoader& weights = loader.weights;
  ASSIGN_OR_RETURN(
      MoaWeights moa,
      loader.MoaMatrices(WeightLayout::kInOut, "q_proj.experts.w", "q_proj.output_experts.w")
  );
  ASSIGN_OR_RETURN(moa.key, weights.Dense("k_proj.weight", WeightLayout::kOutIn, model_dim, width));
  ASSIGN_OR_RETURN(
      moa.value, weights.Dense("v_proj.weight", WeightLayout::kOutIn, model_dim, width)
  );
  RouterWeights score;
  ASSIGN_OR_RETURN(
      score.score,
      weights.Dense("q_proj.w_gate", WeightLayout::kInOut, model_dim, config.router.experts)
  );
  ASSIGN_OR_RETURN(
      std::unique_ptr<Router> router,
      Router::Create(loader.ops, config.router, 0, RouterKind::kAttention, score)
  );
  return std::make_unique<MoaAttention>(loader.ops, config, std::move(router), moa, nullptr);
}

StatusOr<std::unique_ptr<Attention>> LoadSwitchHead(const LayerLoader& loader) {
  return LoadSwitchHeadAttention(
      loader,
      {
          .projections = {"q.weight", "k.weight", "v", "o"},
          .selections = {"sel_q", "sel_k", "sel_v", "sel_o"},
          .distance_projection = "pos_to_pk",
      }
  );
}

// Keeps what the routers chose, by router name.
class RoutingRecorder final : public ForwardObserver {
 public:
  explicit RoutingRecorder(Ops& ops) : ops_(ops) {}

  void OnEmbedding(TensorView /*x*/) override {}
  void OnHidden(int64_t /*layer*/, TensorView /*x*/) override {}
  void OnRouting(int64_t /*layer*/, RouterKind router, const Routing& routing) override {
    Append(routing.expert_ids, ids_[NameOf(router)]);
    Append(routing.gates, gates_[NameOf(router)]);
  }

  const std::map<std::string, std::vector<int32_t>>& ids() const { return ids_; }
  const std::vector<float>& GatesOf(const std::string& router) const { return gates_.at(router); }

 private:
  template <typename Element>
  void Append(TensorView from, std::vector<Element>& to) {
    const size_t before = to.size();
    to.resize(before + static_cast<size_t>(from.elements()));
    ops_.Download(from.data(), to.data() + before, from.bytes());
  }

  Ops& ops_;
  std::map<std::string, std::vector<int32_t>> ids_;
  std::map<std::string, std::vector<float>> gates_;
};

class Layer {
 public:
  Layer(const std::string& name, const std::string& backend)
      : ops_(Checked(MakeOps({.device = DeviceOf(backend), .threads = 2}))),
        files_(Checked(WeightFiles::Open(FolderOf(name)))),
        expected_(Checked(SafetensorsFile::Open(FolderOf(name) / "expected.safetensors"))),
        weights_(*files_, {}, *ops_) {
    ConfigReader config = Checked(ConfigReader::Open(FolderOf(name) / "config.json"));
    const bool is_moa = name == "moa_layer";
    config_ = is_moa ? MoaConfig(config) : SwitchHeadConfig(config);
    CHECK(config.status().ok()) << MessageOf(config.status());
    const LayerLoader loader = {.model = config_, .weights = weights_, .ops = *ops_, .layer = 0};
    attention_ = Checked(is_moa ? LoadMoa(loader) : LoadSwitchHead(loader));
    CHECK(weights_.CheckAllUsed().ok());
  }

  // What the module makes of prompt p, in chunks of the given size; 0: all at once.
  std::vector<float> Run(int prompt, int64_t chunk_tokens, ForwardObserver& observer) const {
    const std::vector<float> input = Floats(prompt, "input");
    const std::vector<float> value_input =
        Has(prompt, "v_input") ? Floats(prompt, "v_input") : input;
    const int64_t dim = config_.model_dim;
    const auto tokens = static_cast<int64_t>(input.size()) / dim;
    const AttentionConfig& attention = config_.attention;
    const KvLayout layout = {
        .layers = 1,
        .kv_heads = attention.kv_heads,
        .key_dim = attention.key_dim,
        .value_dim = attention.value_dim,
    };
    const KvCache cache =
        Checked(KvCache::Create(*ops_, layout, kMaxTokens / kBlockTokens, kBlockTokens));
    Scratch scratch = Checked(Scratch::Create(*ops_, attention_->ScratchBytes(kMaxTokens)));
    OpsMemory memory(*ops_);
    const TensorView normed = memory.Floats({tokens, dim}, input);
    const TensorView raw = memory.Floats({tokens, dim}, value_input);
    const TensorView out = memory.Zeros(DType::kF32, {tokens, dim});
    const int64_t step = chunk_tokens == 0 ? tokens : chunk_tokens;
    for (int64_t begin = 0; begin < tokens; begin += step) {
      const int64_t end = std::min(begin + step, tokens);
      Forward(
          {.normed = normed.Slice(begin, end), .raw = raw.Slice(begin, end)},
          begin,
          cache,
          scratch,
          out.Slice(begin, end),
          observer
      );
    }
    EXPECT_TRUE(ops_->Finish().ok());
    return memory.ReadFloats(out);
  }

  Ops& ops() const { return *ops_; }
  bool Has(int prompt, const std::string& key) const {
    return expected_->tensors().contains(Concat("p", prompt, ".", key));
  }
  std::vector<float> Floats(int prompt, const std::string& key) const {
    return Elements<float>(prompt, key);
  }
  std::vector<int32_t> Ids(int prompt, const std::string& router) const {
    return Elements<int32_t>(prompt, router + ".ids");
  }

 private:
  template <typename Element>
  std::vector<Element> Elements(int prompt, const std::string& key) const {
    const StoredTensor& tensor = expected_->tensors().at(Concat("p", prompt, ".", key));
    std::vector<Element> elements(static_cast<size_t>(tensor.bytes) / sizeof(Element));
    std::memcpy(elements.data(), tensor.data, static_cast<size_t>(tensor.bytes));
    return elements;
  }

  // One sequence whose block b is block b of the cache.
  void Forward(
      const LayerInput& input,
      int64_t first_token,
      const KvCache& cache,
      Scratch& scratch,
      TensorView out,
      ForwardObserver& observer
  ) const {
    const int64_t tokens = input.normed.dim(0);
    std::vector<int32_t> positions(static_cast<size_t>(tokens));
    std::iota(positions.begin(), positions.end(), static_cast<int32_t>(first_token));
    const std::vector<int32_t> phases(static_cast<size_t>(tokens), 0);
    const std::vector<int32_t> offsets = {0, static_cast<int32_t>(tokens)};
    const auto kv_length = static_cast<int32_t>(first_token + tokens);
    std::vector<int32_t> blocks(kMaxTokens / kBlockTokens);
    std::iota(blocks.begin(), blocks.end(), 0);
    OpsMemory memory(*ops_);
    const auto ids = [&memory](const std::vector<int32_t>& values) {
      return memory.Ints({static_cast<int64_t>(values.size())}, values);
    };
    StepBatch batch;
    batch.tokens = tokens;
    batch.sequences = 1;
    batch.positions = ids(positions);
    batch.phases = ids(phases);
    batch.slots = ids(positions);
    batch.query_offsets = ids(offsets);
    batch.kv_lengths = ids({kv_length});
    batch.block_tables = ids(blocks).Reshaped({1, kMaxTokens / kBlockTokens});
    attention_->Forward(input, batch, cache.Layer(0), scratch, out, &observer);
  }

  std::unique_ptr<Ops> ops_;
  std::unique_ptr<WeightFiles> files_;
  std::unique_ptr<SafetensorsFile> expected_;
  WeightLoader weights_;
  ModelConfig config_;
  std::unique_ptr<Attention> attention_;
};

double LargestDifference(const std::vector<float>& left, const std::vector<float>& right) {
  EXPECT_EQ(left.size(), right.size());
  double largest = left.size() == right.size() ? 0 : INFINITY;
  for (size_t i = 0; i < std::min(left.size(), right.size()); ++i) {
    const double difference = std::abs(double{left[i]} - double{right[i]});
    largest = difference <= largest ? largest : difference;  // a NaN becomes the largest
  }
  return largest;
}

class GoldenLayer : public testing::TestWithParam<std::tuple<const char*, std::string, int>> {};

TEST_P(GoldenLayer, OutputAndRoutingEqualTheReference) {
  const auto& [name, backend, chunk_tokens] = GetParam();
  const Layer layer(name, backend);
  for (int prompt = 0; prompt < kPrompts; ++prompt) {
    RoutingRecorder recorder(layer.ops());

    const std::vector<float> out = layer.Run(prompt, chunk_tokens, recorder);

    EXPECT_LE(LargestDifference(out, layer.Floats(prompt, "output")), kTolerance);
    EXPECT_EQ(recorder.ids().size(), std::string(name) == "moa_layer" ? 1U : 2U);
    for (const auto& [router, ids] : recorder.ids()) {
      EXPECT_THAT(ids, ElementsAreArray(layer.Ids(prompt, router))) << router;
      EXPECT_LE(
          LargestDifference(recorder.GatesOf(router), layer.Floats(prompt, router + ".weights")),
          kGateTolerance
      ) << router;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Sets,
    GoldenLayer,
    testing::Combine(
        testing::Values("moa_layer", "switchhead_layer_rope", "switchhead_layer_xl"),
        testing::ValuesIn(BackendNames()),
        testing::Values(0, 1, 3)
    ),
    [](const testing::TestParamInfo<GoldenLayer::ParamType>& test) {
      const int chunk_tokens = std::get<2>(test.param);
      return Concat(
          std::get<0>(test.param),
          "_",
          std::get<1>(test.param),
          "_",
          chunk_tokens == 0 ? std::string("AllAtOnce") : Concat("ChunksOf", chunk_tokens)
      );
    }
);

}  // namespace
}  // namespace switchyard
