#include "tests/support/tiny_model.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "engine/model/safetensors.h"
#include "kernels/random.h"
#include "tests/support/temporary_folder.h"

namespace switchyard {
namespace {

using Shape = std::vector<int64_t>;

int64_t Product(const Shape& shape) {
  int64_t product = 1;
  for (const int64_t size : shape) {
    product *= size;
  }
  return product;
}

// Collects random tensors; each has a stream of its own, so adding one leaves the others as they
// are.
class TensorSet {
 public:
  explicit TensorSet(uint64_t seed) : seed_(seed) {}

  // Evenly spread in center - spread .. center + spread.
  std::vector<float>& Add(
      const std::string& name, const Shape& shape, float spread, float center = 0
  ) {
    std::vector<float>& values = values_.emplace_back(static_cast<size_t>(Product(shape)));
    const uint64_t stream = seed_ * 1000 + values_.size();
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = center + spread * (2 * static_cast<float>(UniformDraw(stream, i)) - 1);
    }
    tensors_.push_back(
        {.name = name,
         .dtype = "F32",
         .shape = shape,
         .data = values.data(),
         .bytes = static_cast<int64_t>(values.size() * sizeof(float))}
    );
    return values;
  }

  // Spread so that a unit input gives an output of about `gain`.
  void AddMatrix(const std::string& name, const Shape& shape, int64_t in_features, float gain = 1) {
    Add(name, shape, gain * std::sqrt(3.0F / static_cast<float>(in_features)));
  }

  void AddEmbedding(const std::string& name, const TinyModelOptions& options) {
    std::vector<float>& table = Add(name, {options.vocabulary_size, options.model_dim}, 1);
    if (options.nan_token.has_value()) {
      std::fill_n(
          table.begin() + *options.nan_token * options.model_dim,
          options.model_dim,
          std::numeric_limits<float>::quiet_NaN()
      );
    }
  }

  const std::vector<TensorToWrite>& tensors() const { return tensors_; }

 private:
  uint64_t seed_;
  std::deque<std::vector<float>> values_;  // a deque: its elements stay where they are
  std::vector<TensorToWrite> tensors_;
};

Status Write(
    const std::filesystem::path& folder, const nlohmann::json& config, const TensorSet& tensors
) {
  std::ofstream file(folder / "config.json");
  file << config.dump(1) << "\n";
  if (!file.flush()) {
    return Internal("cannot write ", (folder / "config.json").string());
  }
  return WriteSafetensors(folder / "model.safetensors", tensors.tensors());
}

void AddJetMoeLayer(const std::string& prefix, const TinyModelOptions& options, TensorSet& set) {
  const int64_t dim = options.model_dim;
  const int64_t width = options.heads * options.head_dim;
  const int64_t experts = options.experts;
  const int64_t hidden = options.feed_forward_dim;
  const std::string attention = prefix + "self_attention.";
  set.Add(prefix + "input_layernorm.weight", {dim}, 0.2F, 1);
  set.AddMatrix(attention + "experts.router.layer.weight", {experts, dim}, dim);
  set.AddMatrix(attention + "experts.input_linear.weight", {experts, width, dim}, dim, 2);
  set.AddMatrix(attention + "experts.output_linear.weight", {experts, dim, width}, width);
  set.Add(attention + "experts.bias", {dim}, 0.1F);
  set.AddMatrix(attention + "kv_proj.weight", {2 * width, dim}, dim, 2);
  set.Add(prefix + "post_attention_layernorm.weight", {dim}, 0.2F, 1);
  set.AddMatrix(prefix + "mlp.router.layer.weight", {experts, dim}, dim);
  set.AddMatrix(prefix + "mlp.input_linear.weight", {experts, 2 * hidden, dim}, dim);
  set.AddMatrix(prefix + "mlp.output_linear.weight", {experts, dim, hidden}, hidden);
  set.Add(prefix + "mlp.bias", {dim}, 0.1F);
}

void AddSwitchHeadLayer(
    const std::string& prefix, const TinyModelOptions& options, TensorSet& set
) {
  const int64_t dim = options.model_dim;
  const int64_t head_dim = options.head_dim;
  const int64_t width = options.heads * head_dim;
  const int64_t experts = options.heads * options.experts;
  const int64_t hidden = options.feed_forward_dim;
  const std::string attention = prefix + "self_attn.";
  for (const char* norm : {"norm1.", "norm2."}) {
    set.Add(prefix + norm + "weight", {dim}, 0.2F, 1);
    set.Add(prefix + norm + "bias", {dim}, 0.1F);
  }
  set.AddMatrix(attention + "projections.q", {width, dim}, dim, 2);
  set.AddMatrix(attention + "projections.k", {width, dim}, dim, 2);
  set.AddMatrix(attention + "projections.v", {experts, dim, head_dim}, dim);
  set.AddMatrix(attention + "projections.o", {experts, head_dim, dim}, head_dim);
  set.AddMatrix(attention + "selections.v", {experts, dim}, dim);
  set.AddMatrix(attention + "selections.o", {experts, dim}, dim);
  set.AddMatrix(prefix + "linear1.weight", {hidden, dim}, dim);
  set.Add(prefix + "linear1.bias", {hidden}, 0.1F);
  set.AddMatrix(prefix + "linear2.weight", {dim, hidden}, hidden);
  set.Add(prefix + "linear2.bias", {dim}, 0.1F);
}

}  // namespace

Status WriteTinyJetMoe(const std::filesystem::path& folder, const TinyModelOptions& options) {
  const nlohmann::json config = {
      {"model_type", "jetmoe"},
      {"vocab_size", options.vocabulary_size},
      {"hidden_size", options.model_dim},
      {"num_hidden_layers", options.layers},
      {"num_attention_heads", options.heads * options.top_k},
      {"num_key_value_heads", options.heads},
      {"kv_channels", options.head_dim},
      {"ffn_hidden_size", options.feed_forward_dim},
      {"max_position_embeddings", options.context_tokens},
      {"activation_function", "silu"},
      {"glu", true},
      {"bias", true},
      {"moe_num_experts", options.experts},
      {"moe_top_k", options.top_k},
      {"bos_token_id", 1},
      {"eos_token_id", options.eos_id},
      {"tie_word_embeddings", false},
      {"rope_theta", 10000.0},
      {"rms_norm_eps", 1e-5},
  };
  TensorSet set(options.seed);
  set.AddEmbedding("model.embed_tokens.weight", options);
  for (int64_t layer = 0; layer < options.layers; ++layer) {
    AddJetMoeLayer("model.layers." + std::to_string(layer) + ".", options, set);
  }
  set.Add("model.norm.weight", {options.model_dim}, 0.2F, 1);
  set.AddMatrix(
      "lm_head.weight", {options.vocabulary_size, options.model_dim}, options.model_dim, 2
  );
  return Write(folder, config, set);
}

Status WriteTinySwitchHead(const std::filesystem::path& folder, const TinyModelOptions& options) {
  // The training code keeps optional numbers as strings.
  const nlohmann::json config = {
      {"state_size", options.model_dim},
      {"transformer.encoder_n_layers", options.layers},
      {"transformer.n_heads", options.heads},
      {"transformer.head_projection_size", std::to_string(options.head_dim)},
      {"transformer.variant", "preln_moeatt"},
      {"transformer.activation", "relu"},
      // Half a unit more, so that rounding down gives the width whatever the division did.
      {"transformer.ff_multiplier",
       (static_cast<double>(options.feed_forward_dim) + 0.5) /
           static_cast<double>(options.model_dim)},
      {"moe.att.variant", "full_rope"},
      {"moe.att.n_experts", options.experts},
      {"moe.att.k", options.top_k},
      {"moe.att.q_expert", 0},
      {"moe.att.k_expert", 0},
      {"moe.att.v_expert", 1},
      {"moe.att.o_expert", 1},
      {"moe.att.selection_mode", "sigmoid"},
      {"rope.rotate_fraction", 0.5},
      {"rope.base", 10000.0},
      {"lm.unroll", options.context_tokens},
      {"lm.trafo.context_blocks", 0},
  };
  TensorSet set(options.seed);
  set.AddEmbedding("embedding.weight", options);
  for (int64_t layer = 0; layer < options.layers; ++layer) {
    AddSwitchHeadLayer("unique_layers." + std::to_string(layer) + ".", options, set);
  }
  set.Add("out_norm.weight", {options.model_dim}, 0.2F, 1);
  set.Add("out_norm.bias", {options.model_dim}, 0.1F);
  set.AddMatrix(
      "output.weight", {options.vocabulary_size, options.model_dim}, options.model_dim, 2
  );
  set.Add("output.bias", {options.vocabulary_size}, 0.1F);
  return Write(folder, config, set);
}

StatusOr<std::unique_ptr<Model>> LoadTinyModel(
    TinyFamily family, const TinyModelOptions& options, Ops& ops
) {
  const TemporaryFolder folder;
  RETURN_IF_ERROR(
      family == TinyFamily::kJetMoe ? WriteTinyJetMoe(folder.path(), options)
                                    : WriteTinySwitchHead(folder.path(), options)
  );
  return Model::Load(folder.path(), WeightOptions(), ops);
}

}  // namespace switchyard
