#include "engine/model/families/known_families.h"

#include <string>

#include "engine/model/families/switch_head_arguments.h"
#include "engine/model/families/training_code.h"

namespace switchyard {
namespace {

bool Recognizes(ConfigReader& config) {
  return config.TextOr({"transformer.variant"}, "").ends_with("moe_universal");
}

StatusOr<ModelConfig> ReadConfig(ConfigReader& config) {
  ModelConfig model = ReadTrainingFrame(config);
  model.family = "moeut_train";
  model.attention = ReadSwitchHeadAttention(config, model.model_dim);
  ReadRotary(config, model.attention);
  if (config.FlagOr({"moe.nonorm"}, false)) {
    model.attention.value_stream = StreamForm::kRaw;
  }
  model.stored_layers = config.PositiveOr({"transformer.universal.group_size"}, 1);
  const std::string order = config.TextOr({"transformer.universal.group_type"}, "abab");
  if (order != "abab" && order != "aabb") {
    config.Fail(Concat("transformer.universal.group_type is ", order, "; supported: abab, aabb"));
  }
  model.sharing = order == "abab" ? LayerSharing::kRotate : LayerSharing::kRepeat;
  if (model.layers % model.stored_layers != 0) {
    config.Fail(Concat(
        "transformer.encoder_n_layers is ",
        model.layers,
        ", not a multiple of transformer.universal.group_size, ",
        model.stored_layers
    ));
  }
  RETURN_IF_ERROR(config.status());
  return model;
}

StatusOr<Decoder> BuildDecoder(const ModelConfig& model, WeightLoader& weights, Ops& ops) {
  return BuildTrainingDecoder(model, weights, ops, LoadTrainingSwitchHead);
}

}  // namespace

Family MoeutTrainFamily() {
  return {"moeut_train", kTrainingEmbedding, Recognizes, ReadConfig, BuildDecoder};
}

}  // namespace switchyard
