#include "engine/model/families/known_families.h"

#include <string>

#include "engine/model/families/switch_head_arguments.h"
#include "engine/model/families/training_code.h"

namespace switchyard {
namespace {

bool Recognizes(ConfigReader& config) {
  return config.Has("transformer.variant") && config.Has("moe.att.variant");
}

StatusOr<ModelConfig> ReadConfig(ConfigReader& config) {
  ModelConfig model = ReadTrainingFrame(config);
  model.family = "switchhead";
  model.attention = ReadSwitchHeadAttention(config, model.model_dim);
  const std::string variant = config.TextOr({"moe.att.variant"}, "moa");
  if (variant == "full_rope") {
    ReadRotary(config, model.attention);
  } else if (variant == "full") {
    model.attention.positions = PositionKind::kTransformerXl;
  } else {
    config.Fail(Concat("moe.att.variant is ", variant, "; supported: full, full_rope, moa"));
  }
  RETURN_IF_ERROR(config.status());
  return model;
}

StatusOr<Decoder> BuildDecoder(const ModelConfig& model, WeightLoader& weights, Ops& ops) {
  return BuildTrainingDecoder(model, weights, ops, LoadTrainingSwitchHead);
}

}  // namespace

Family SwitchHeadFamily() {
  return {"switchhead", kTrainingEmbedding, Recognizes, ReadConfig, BuildDecoder};
}

}  // namespace switchyard
