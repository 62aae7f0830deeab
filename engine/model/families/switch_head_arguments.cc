#include "engine/model/families/switch_head_arguments.h"

#include <cmath>

#include "engine/model/families/switch_head_loading.h"
#include "engine/model/families/training_code.h"

namespace switchyard {

AttentionConfig ReadSwitchHeadAttention(ConfigReader& config, int64_t model_dim) {
  AttentionConfig attention;
  attention.kind = AttentionKind::kSwitchHead;
  attention.kv_heads = config.Positive({"transformer.n_heads"});
  attention.key_dim =
      config.PositiveOr({"transformer.head_projection_size"}, model_dim / attention.kv_heads);
  attention.value_dim = config.PositiveOr({"moe.att.v_size"}, attention.key_dim);
  attention.router = {
      .groups = attention.kv_heads,
      .experts = config.PositiveOr({"moe.att.n_experts"}, 4),
      .top_k = config.PositiveOr({"moe.att.k"}, 2),
      .gate = ReadAttentionGate(config),
  };
  attention.query_routed = config.FlagOr({"moe.att.q_expert"}, true);
  attention.key_routed = config.FlagOr({"moe.att.k_expert"}, true);
  attention.value_routed = config.FlagOr({"moe.att.v_expert"}, true);
  attention.output_routed = config.FlagOr({"moe.att.o_expert"}, true);
  attention.value_has_router = !config.FlagOr({"moe.att.same_sel"}, false);
  attention.query_and_key_have_routers = config.FlagOr({"moe.att.separate_kq_sel"}, false);
  // The training code multiplies query and key (and the distance keys) by key_dim^(-1/4) each.
  attention.scale = static_cast<float>(1 / std::sqrt(static_cast<double>(attention.key_dim)));
  return attention;
}

StatusOr<std::unique_ptr<Attention>> LoadTrainingSwitchHead(
    const LayerLoader& loader, const std::string& prefix
) {
  SwitchHeadNames names;
  names.distance_projection = prefix + "pos_to_pk";
  const char* letters[kProjections] = {"q", "k", "v", "o"};
  for (size_t i = 0; i < kProjections; ++i) {
    names.projections[i] = prefix + "projections." + letters[i];
    names.selections[i] = prefix + "selections." + letters[i];
  }
  return LoadSwitchHeadAttention(loader, names);
}

}  // namespace switchyard
