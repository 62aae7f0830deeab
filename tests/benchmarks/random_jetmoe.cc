#include "tests/benchmarks/random_jetmoe.h"

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "engine/model/safetensors.h"
#include "kernels/float16.h"

namespace switchyard {
namespace {

// Normal numbers as bf16, one pool for all tensors: what the values are does not matter for the
// cost, that they spread the routing over all experts does.
std::vector<uint16_t> MakePool(int64_t elements, float deviation) {
  std::mt19937 generator(1);
  std::normal_distribution<float> normal(0, deviation);
  std::vector<uint16_t> block(1 << 20);
  for (uint16_t& value : block) {
    value = FloatToBf16(normal(generator));
  }
  std::vector<uint16_t> pool(static_cast<size_t>(elements));
  for (size_t i = 0; i < pool.size(); ++i) {
    pool[i] = block[(i + i / block.size() * 7919) % block.size()];
  }
  return pool;
}

void AddLayer(const RandomJetMoeShape& shape, int64_t layer, std::vector<NamedShape>& list) {
  const std::string prefix = Concat("model.layers.", layer, ".");
  const int64_t width = shape.kv_heads * shape.head_dim;
  const int64_t dim = shape.model_dim;
  const int64_t hidden = shape.feed_forward_dim;
  const auto add = [&list, &prefix](const char* name, std::vector<int64_t> sizes) {
    list.push_back({prefix + name, std::move(sizes)});
  };
  add("input_layernorm.weight", {dim});
  add("post_attention_layernorm.weight", {dim});
  add("self_attention.experts.router.layer.weight", {shape.experts, dim});
  add("self_attention.experts.input_linear.weight", {shape.experts, width, dim});
  add("self_attention.experts.output_linear.weight", {shape.experts, dim, width});
  add("self_attention.experts.bias", {dim});
  add("self_attention.kv_proj.weight", {2 * width, dim});
  add("mlp.router.layer.weight", {shape.experts, dim});
  add("mlp.input_linear.weight", {shape.experts, 2 * hidden, dim});
  add("mlp.output_linear.weight", {shape.experts, dim, hidden});
  add("mlp.bias", {dim});
}

}  // namespace

nlohmann::json JetMoeConfig(const RandomJetMoeShape& shape) {
  return {
      {"model_type", "jetmoe"},
      {"vocab_size", shape.vocabulary_size},
      {"hidden_size", shape.model_dim},
      {"num_hidden_layers", shape.layers},
      {"num_key_value_heads", shape.kv_heads},
      {"kv_channels", shape.head_dim},
      {"moe_num_experts", shape.experts},
      {"moe_top_k", shape.top_k},
      {"ffn_hidden_size", shape.feed_forward_dim},
      {"max_position_embeddings", shape.context_tokens},
      {"tie_word_embeddings", true},
  };
}

std::vector<NamedShape> JetMoeTensors(const RandomJetMoeShape& shape) {
  std::vector<NamedShape> list;
  list.push_back({"model.embed_tokens.weight", {shape.vocabulary_size, shape.model_dim}});
  for (int64_t layer = 0; layer < shape.layers; ++layer) {
    AddLayer(shape, layer, list);
  }
  list.push_back({"model.norm.weight", {shape.model_dim}});
  return list;
}

Status WriteRandomJetMoe(const std::filesystem::path& folder, const RandomJetMoeShape& shape) {
  std::ofstream out(folder / "config.json");
  out << JetMoeConfig(shape).dump(1) << "\n";
  out.close();
  if (!out) {
    return Unavailable((folder / "config.json").string(), ": cannot be written");
  }

  const int64_t largest = std::max(
      shape.experts * 2 * shape.feed_forward_dim * shape.model_dim,
      shape.vocabulary_size * shape.model_dim
  );
  const auto deviation = static_cast<float>(1 / std::sqrt(static_cast<double>(shape.model_dim)));
  const std::vector<uint16_t> pool = MakePool(largest + (1 << 20), deviation);
  std::vector<TensorToWrite> tensors;
  for (const NamedShape& tensor : JetMoeTensors(shape)) {
    int64_t elements = 1;
    for (const int64_t size : tensor.shape) {
      elements *= size;
    }
    // A different part of the pool for each tensor, so that no two routers are the same.
    const size_t room = pool.size() - static_cast<size_t>(elements);
    const size_t begin = room == 0 ? 0 : tensors.size() * 104729 % room;
    tensors.push_back({tensor.name, "BF16", tensor.shape, pool.data() + begin, 2 * elements});
  }
  return WriteSafetensors(folder / "model.safetensors", tensors);
}

}  // namespace switchyard
