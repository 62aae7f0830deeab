#include "engine/model/families/known_families.h"

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "engine/model/families/training_code.h"
#include "engine/model/moa_attention.h"

namespace switchyard {
namespace {

bool Recognizes(ConfigReader& config) {
  return config.Has("transformer.variant") && config.TextOr({"moe.att.variant"}, "") == "moa";
}

StatusOr<ModelConfig> ReadConfig(ConfigReader& config) {
  ModelConfig model = ReadTrainingFrame(config);
  model.family = "moa_lm";
  const int64_t top_k = config.Positive({"transformer.n_heads"});  // heads that are active at once
  AttentionConfig& attention = model.attention;
  attention.kind = AttentionKind::kMoa;
  attention.kv_heads = 1;
  attention.key_dim =
      config.PositiveOr({"transformer.head_projection_size"}, model.model_dim / top_k);
  attention.value_dim = attention.key_dim;
  attention.positions = PositionKind::kTransformerXl;
  attention.router = {
      .groups = 1,
      .experts = config.PositiveOr({"moe.att.n_experts"}, 4),
      .top_k = top_k,
      .gate = GateKind::kSoftmaxAll,
  };
  const std::string mode = config.TextOr({"moa.mode"}, "my");
  if (mode == "my") {
    attention.router.gate = ReadAttentionGate(config);
  } else if (mode != "moa") {
    config.Fail(Concat("moa.mode is ", mode, "; supported: my, moa"));
  }
  if (!config.FlagOr({"moe.att.q_expert"}, true)) {
    config.Fail("moe.att.q_expert is 0: MoA attention has routed queries");
  }
  RETURN_IF_ERROR(config.status());
  return model;
}

// Columns [begin, begin + columns) of a stored [in, 2 * columns] matrix, turned to [out, in].
std::vector<float> TransposedColumns(
    const std::vector<float>& matrix, int64_t rows, int64_t columns, int64_t begin
) {
  std::vector<float> out(static_cast<size_t>(rows * columns));
  for (int64_t column = 0; column < columns; ++column) {
    for (int64_t row = 0; row < rows; ++row) {
      out[static_cast<size_t>(column * rows + row)] =
          matrix[static_cast<size_t>(row * 2 * columns + begin + column)];
    }
  }
  return out;
}

StatusOr<std::unique_ptr<Attention>> LoadMoa(const LayerLoader& loader, const std::string& prefix) {
  AttentionConfig config = loader.model.attention;
  const int64_t model_dim = loader.model.model_dim;
  const int64_t width = config.key_dim;
  WeightLoader& weights = loader.weights;
  // Trained, so it is a tensor; query and key (and distance keys) get its square root each.
  ASSIGN_OR_RETURN(const std::vector<float> scale, weights.Floats(prefix + "scale", {1}));
  config.scale = scale[0];
  if (!(config.scale > 0) || !std::isfinite(config.scale)) {
    return DataLoss(
        weights.FileOf(prefix + "scale"),
        ": tensor ",
        prefix,
        "scale is ",
        config.scale,
        ", not a positive number"
    );
  }

  ASSIGN_OR_RETURN(
      MoaWeights moa,
      loader.MoaMatrices(WeightLayout::kInOut, prefix + "data_to_q", prefix + "out_proj")
  );
  const std::string kv = prefix + "data_to_kv";
  ASSIGN_OR_RETURN(const std::vector<float> matrix, weights.Floats(kv, {model_dim, 2 * width}));
  moa.key = weights.Computed(
      kv, WeightRole::kDense, {width, model_dim}, TransposedColumns(matrix, model_dim, width, 0)
  );
  moa.value = weights.Computed(
      kv, WeightRole::kDense, {width, model_dim}, TransposedColumns(matrix, model_dim, width, width)
  );
  ASSIGN_OR_RETURN(
      std::unique_ptr<Router> router,
      loader.LinearRouter(config.router, RouterKind::kAttention, prefix + "sel_dst")
  );
  ASSIGN_OR_RETURN(
      std::unique_ptr<DistanceKeys> distance_keys, loader.LoadDistanceKeys(prefix + "pos_to_pk")
  );
  return std::make_unique<MoaAttention>(
      loader.ops, config, std::move(router), moa, std::move(distance_keys)
  );
}

StatusOr<Decoder> BuildDecoder(const ModelConfig& model, WeightLoader& weights, Ops& ops) {
  return BuildTrainingDecoder(model, weights, ops, LoadMoa);
}

}  // namespace

Family MoaLmFamily() {
  return {"moa_lm", kTrainingEmbedding, Recognizes, ReadConfig, BuildDecoder};
}

}  // namespace switchyard
