#include "server/model_info.h"

#include <algorithm>

#include "server/version.h"

namespace switchyard {
namespace {

void SetSampling(const SamplingParameters& defaults, v1::SamplingParameters& sampling) {
  sampling.set_temperature(defaults.temperature);
  sampling.set_top_k(defaults.top_k);
  sampling.set_top_p(defaults.top_p);
  sampling.set_min_p(defaults.min_p);
  sampling.set_typical_p(defaults.typical_p);
  sampling.set_repetition_penalty(defaults.repetition_penalty);
  sampling.set_presence_penalty(defaults.presence_penalty);
  sampling.set_frequency_penalty(defaults.frequency_penalty);
  sampling.set_no_repeat_ngram_size(defaults.no_repeat_ngram_tokens);
}

void AddRouters(const Model& model, v1::GetModelInfoResponse& info) {
  for (const Router* router : model.routers()) {
    v1::RouterInfo* described = info.add_routers();
    described->set_layer(static_cast<int32_t>(router->layer()));
    described->set_kind(NameOf(router->kind()));
    described->set_heads(static_cast<int32_t>(router->config().groups));
    described->set_experts(static_cast<int32_t>(router->config().experts));
    described->set_top_k(static_cast<int32_t>(router->config().top_k));
  }
}

// All routers of a kind are made from one config.
void AddRouterKinds(v1::GetModelInfoResponse& info) {
  for (const v1::RouterInfo& router : info.routers()) {
    auto& kinds = *info.mutable_router_kinds();
    auto kind = std::find_if(kinds.begin(), kinds.end(), [&router](const v1::RouterKind& known) {
      return known.kind() == router.kind();
    });
    if (kind == kinds.end()) {
      v1::RouterKind& added = *info.add_router_kinds();
      added.set_kind(router.kind());
      added.set_heads(router.heads());
      added.set_experts(router.experts());
      added.set_top_k(router.top_k());
      kind = kinds.end() - 1;
    }
    kind->set_routers(kind->routers() + 1);
  }
}

void SetCapacity(const Engine& engine, v1::GetModelInfoResponse& info) {
  const SchedulerLimits& limits = engine.options().limits;
  const int32_t blocks = engine.Load().total_blocks;
  info.set_kv_bytes_per_token(engine.model().kv_layout().BytesPerToken());
  info.set_kv_block_tokens(limits.block_tokens);
  info.set_kv_blocks_total(blocks);
  info.set_kv_tokens_total(int64_t{blocks} * limits.block_tokens);
  info.set_max_step_tokens(limits.max_step_tokens);
}

}  // namespace

v1::GetModelInfoResponse DescribeModel(const LoadedModel& loaded) {
  const Model& model = loaded.engine->model();
  v1::GetModelInfoResponse info;
  info.set_model(loaded.name);
  info.set_family(model.config().family);
  info.set_vocabulary_size(loaded.vocabulary_size);
  info.set_context_tokens(loaded.context_tokens);
  info.set_layers(static_cast<int32_t>(model.config().layers));
  info.set_parameters_total(model.summary().parameters_total);
  info.set_parameters_active(model.summary().parameters_active);
  info.set_weights_bytes(model.summary().weights_bytes);
  SetCapacity(*loaded.engine, info);
  info.set_device(loaded.ops->Name());
  info.set_server_version(kServerVersion);
  SetSampling(loaded.defaults.sampling, *info.mutable_default_sampling());
  info.set_default_max_tokens(loaded.defaults.max_tokens);
  AddRouters(model, info);
  AddRouterKinds(info);
  info.set_dtype(NameOf(model.summary().dtype));
  info.set_has_tokenizer(loaded.tokenizer != nullptr);
  info.mutable_eos_token_ids()->Add(loaded.eos_token_ids.begin(), loaded.eos_token_ids.end());
  return info;
}

}  // namespace switchyard
