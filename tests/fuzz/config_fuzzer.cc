#include <cmath>

#include "engine/model/families/family.h"
#include "engine/model/kv_cache.h"
#include "engine/model/weight_files.h"
#include "kernels/reference/reference_ops.h"
#include "tests/fuzz/input_files.h"

// config.json: every family translates it, whichever it is of. What the checks let pass is sound
// enough to multiply sizes and to ask for the first tensor.

namespace switchyard {
namespace {

// A file without tensors.
constexpr std::string_view kNoWeights("\x02\0\0\0\0\0\0\0{}", 10);

void ExpectSound(const ModelConfig& config) {
  const AttentionConfig& attention = config.attention;
  for (const int64_t size :
       {config.model_dim,
        config.layers,
        config.stored_layers,
        config.context_tokens,
        attention.kv_heads,
        attention.key_dim,
        attention.value_dim,
        attention.router.experts,
        attention.router.top_k,
        config.feed_forward.hidden_dim}) {
    Expect(size >= 1, Concat("a size of ", size));
  }
  Expect(config.StoredLayer(0) == 0, "the first layer is not the first stored one");
  const int64_t last = config.StoredLayer(config.layers - 1);
  Expect(0 <= last && last < config.stored_layers, Concat("stored layer ", last));
  Expect(
      0 <= attention.rotary_dims && attention.rotary_dims <= attention.key_dim,
      Concat("rotary width ", attention.rotary_dims)
  );
  // Zero: the scale is a tensor (MoA LM).
  Expect(std::isfinite(attention.scale) && attention.scale >= 0, "no scale");
  const KvLayout layout = {
      .layers = config.layers,
      .kv_heads = attention.kv_heads,
      .key_dim = attention.key_dim,
      .value_dim = attention.value_dim,
  };
  Expect(layout.BytesPerToken() > 0, "a token takes no memory");
}

void Translate(const Family& family, ConfigReader reader, const TemporaryFolder& folder) {
  StatusOr<ModelConfig> config = family.ReadConfig(reader);
  if (!config.ok() || !CheckConfig(*config).ok()) {
    return;
  }
  ExpectSound(*config);
  const StatusOr<std::unique_ptr<WeightFiles>> files = WeightFiles::Open(folder.path());
  Expect(files.ok(), "the file without tensors does not open");
  ReferenceOps ops;
  WeightLoader weights(**files, WeightOptions(), ops);
  config->vocabulary_size = std::max<int64_t>(config->vocabulary_size, 1);
  Expect(!family.BuildDecoder(*config, weights, ops).ok(), "a model was built of nothing");
}

void TranslateForEveryFamily(const uint8_t* data, size_t bytes) {
  const TemporaryFolder& folder = EmptyInputFolder();
  const std::string_view text(reinterpret_cast<const char*>(data), bytes);
  const auto path = folder.Write("config.json", text);
  folder.Write("model.safetensors", kNoWeights);
  StatusOr<ConfigReader> reader = ConfigReader::Open(path);
  if (!reader.ok()) {
    return;
  }
  for (const Family& family : Families()) {
    Translate(family, *reader, folder);
  }
  static_cast<void>(FindFamily(*reader));
}

}  // namespace
}  // namespace switchyard

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes) {
  switchyard::TranslateForEveryFamily(data, bytes);
  return 0;
}
