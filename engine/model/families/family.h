#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "engine/model/config_reader.h"
#include "engine/model/decoder.h"
#include "engine/model/distance_keys.h"
#include "engine/model/expert_feed_forward.h"
#include "engine/model/moa_attention.h"
#include "engine/model/model_config.h"
#include "engine/model/weights.h"
#include "kernels/ops.h"

namespace switchyard {

// What building one layer needs at hand.
struct LayerLoader {
  const ModelConfig& model;
  WeightLoader& weights;
  Ops& ops;
  int64_t layer = 0;

  // A linear router whose scores are the dense weight `name` [groups * experts, model_dim].
  StatusOr<std::unique_ptr<Router>> LinearRouter(
      const RouterConfig& config, RouterKind kind, const std::string& name
  ) const;

  // The table that Transformer-XL positions need, from the dense weight `name` [kv_heads * key_dim,
  // model_dim]; null for other positions.
  StatusOr<std::unique_ptr<DistanceKeys>> LoadDistanceKeys(const std::string& name) const;

  // The routed matrices of MoA attention, query and output, in the model's shapes.
  StatusOr<MoaWeights> MoaMatrices(
      WeightLayout layout, const std::string& query, const std::string& output
  ) const;

  // Both matrices of an expert feed-forward, in the model's shapes.
  StatusOr<ExpertFeedForwardWeights> ExpertMatrices(
      WeightLayout layout, const std::string& up, const std::string& down
  ) const;
};

// One family of checkpoints: translates its config.json and tensor names into the parts that models
// are made of. To add one: a file in this folder with these three functions, and what
// docs/models.md lists.
struct Family {
  const char* name;
  // The tensor whose rows are the vocabulary, for configs that do not say its size.
  const char* embedding_tensor;
  // Whether a config.json is of this family.
  bool (*Recognizes)(ConfigReader& config);
  // INVALID_ARGUMENT naming file and field; options that would change the result and are not
  // supported are refused by name.
  StatusOr<ModelConfig> (*ReadConfig)(ConfigReader& config);
  // DATA_LOSS naming file and tensor.
  StatusOr<Decoder> (*BuildDecoder)(const ModelConfig& config, WeightLoader& weights, Ops& ops);
};

std::span<const Family> Families();

// The family of a config.json; INVALID_ARGUMENT that lists the known ones.
StatusOr<const Family*> FindFamily(ConfigReader& config);

// INVALID_ARGUMENT for what no model can have: top_k above experts, odd rotary width, sizes of
// nothing or over the limits, numbers that turn every logit into a NaN.
Status CheckConfig(const ModelConfig& config);

}  // namespace switchyard
