#include "tests/gpu/model_shape.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/status.h"

namespace switchyard {
namespace {

// Contexts are twice what the published models were trained with: prefill takes 4096 tokens, and
// one more is generated.
const std::array<ModelShape, 4>& Shapes() {
  static const std::array<ModelShape, 4> shapes = {{
      {.name = "jetmoe-8b",
       .kind = ModelKind::kJetMoe,
       .vocabulary_size = 32000,
       .model_dim = 2048,
       .layers = 24,
       .stored_layers = 24,
       .kv_heads = 16,
       .head_dim = 128,
       .attention_experts = 8,
       .attention_top_k = 2,
       .experts = 8,
       .top_k = 2,
       .feed_forward_dim = 5632,
       .context_tokens = 8192},
      {.name = "moeut-1b",
       .kind = ModelKind::kMoeut,
       .vocabulary_size = 8000,
       .model_dim = 1536,
       .layers = 36,
       .stored_layers = 4,
       .kv_heads = 6,
       .head_dim = 128,
       .attention_experts = 12,
       .attention_top_k = 2,
       .experts = 565,
       .top_k = 24,
       .feed_forward_dim = 128,
       .context_tokens = 8192},
      {.name = "tiny-jetmoe",
       .kind = ModelKind::kJetMoe,
       .vocabulary_size = 48,
       .model_dim = 32,
       .layers = 2,
       .stored_layers = 2,
       .kv_heads = 2,
       .head_dim = 8,
       .attention_experts = 4,
       .attention_top_k = 2,
       .experts = 4,
       .top_k = 2,
       .feed_forward_dim = 16,
       .context_tokens = 64},
      {.name = "tiny-moeut",
       .kind = ModelKind::kMoeut,
       .vocabulary_size = 48,
       .model_dim = 32,
       .layers = 4,
       .stored_layers = 2,
       .kv_heads = 2,
       .head_dim = 8,
       .attention_experts = 3,
       .attention_top_k = 2,
       .experts = 5,
       .top_k = 3,
       .feed_forward_dim = 8,
       .context_tokens = 64},
  }};
  return shapes;
}

RandomJetMoeShape JetMoeOf(const ModelShape& shape) {
  return {
      .vocabulary_size = shape.vocabulary_size,
      .model_dim = shape.model_dim,
      .layers = shape.layers,
      .kv_heads = shape.kv_heads,
      .head_dim = shape.head_dim,
      .experts = shape.experts,
      .top_k = shape.top_k,
      .feed_forward_dim = shape.feed_forward_dim,
      .context_tokens = shape.context_tokens};
}

void AddMoeutLayer(const ModelShape& shape, int64_t layer, std::vector<NamedShape>& list) {
  const std::string prefix = Concat("transformer.layers.", layer, ".");
  const auto add = [&list, &prefix](const char* name, std::vector<int64_t> sizes) {
    list.push_back({prefix + name, std::move(sizes)});
  };
  const int64_t dim = shape.model_dim;
  const int64_t width = shape.kv_heads * shape.head_dim;
  const int64_t attention_experts = shape.kv_heads * shape.attention_experts;
  for (const char* norm : {"ln1.weight", "ln1.bias", "ln2.weight", "ln2.bias"}) {
    add(norm, {dim});
  }
  add("attention.q.weight", {width, dim});
  add("attention.k.weight", {width, dim});
  add("attention.sel_v", {attention_experts, dim});
  add("attention.sel_o", {attention_experts, dim});
  add("attention.v", {attention_experts, dim, shape.head_dim});
  add("attention.o", {attention_experts, shape.head_dim, dim});
  add("ffn.expert_sel", {shape.experts, dim});
  add("ffn.keys", {shape.experts, dim, shape.feed_forward_dim});
  add("ffn.values", {shape.experts, shape.feed_forward_dim, dim});
}

// Of the matrices of one layer that a token meets.
int64_t LayerParameters(const ModelShape& shape) {
  const int64_t width = shape.kv_heads * shape.head_dim;
  const int64_t routed = 2 * shape.attention_top_k * width;  // q and o, or v and o
  const int64_t dense = 2 * width;                           // k and v, or q and k
  const int64_t routers = shape.kind == ModelKind::kJetMoe
                              ? shape.attention_experts + shape.experts
                              : 2 * shape.kv_heads * shape.attention_experts + shape.experts;
  const int64_t feed_forward_matrices = shape.kind == ModelKind::kJetMoe ? 3 : 2;
  const int64_t feed_forward = feed_forward_matrices * shape.top_k * shape.feed_forward_dim;
  return shape.model_dim * (routed + dense + routers + feed_forward);
}

}  // namespace

std::vector<std::string> ModelShapeNames() {
  std::vector<std::string> names;
  for (const ModelShape& shape : Shapes()) {
    names.push_back(shape.name);
  }
  return names;
}

const ModelShape* FindModelShape(const std::string& name) {
  const auto found =
      std::find_if(Shapes().begin(), Shapes().end(), [&name](const ModelShape& shape) {
        return shape.name == name;
      });
  return found == Shapes().end() ? nullptr : &*found;
}

nlohmann::json ConfigOf(const ModelShape& shape) {
  if (shape.kind == ModelKind::kJetMoe) {
    return JetMoeConfig(JetMoeOf(shape));
  }
  return {
      {"n_tokens", shape.vocabulary_size},
      {"d_model", shape.model_dim},
      {"n_layers", shape.layers},
      {"group_size", shape.stored_layers},
      {"n_heads", shape.kv_heads},
      {"d_head", shape.head_dim},
      {"att_n_experts", shape.attention_experts},
      {"att_k", shape.attention_top_k},
      {"ff_n_experts", shape.experts},
      {"ff_k", shape.top_k},
      {"ff_expert_size", shape.feed_forward_dim},
      {"context_tokens", shape.context_tokens},
  };
}

std::vector<NamedShape> TensorsOf(const ModelShape& shape) {
  if (shape.kind == ModelKind::kJetMoe) {
    return JetMoeTensors(JetMoeOf(shape));
  }
  std::vector<NamedShape> list;
  list.push_back({"embedding.weight", {shape.vocabulary_size, shape.model_dim}});
  for (int64_t layer = 0; layer < shape.stored_layers; ++layer) {
    AddMoeutLayer(shape, layer, list);
  }
  list.push_back({"out_norm.weight", {shape.model_dim}});
  list.push_back({"out_norm.bias", {shape.model_dim}});
  list.push_back({"lm_head.weight", {shape.vocabulary_size, shape.model_dim}});
  list.push_back({"lm_head.bias", {shape.vocabulary_size}});
  return list;
}

int64_t PrefillFlops(const ModelShape& shape, int64_t tokens) {
  const int64_t matrices = shape.layers * LayerParameters(shape);
  const int64_t head = shape.vocabulary_size * shape.model_dim;
  // A query meets itself and what is before it.
  const int64_t pairs = tokens * (tokens + 1) / 2;
  const int64_t query_heads = shape.QueryGroups() * shape.kv_heads;
  return 2 * tokens * matrices + 2 * head + 4 * shape.layers * query_heads * shape.head_dim * pairs;
}

}  // namespace switchyard
