#include "engine/model/model.h"

#include <algorithm>
#include <utility>

#include "engine/model/families/family.h"

namespace switchyard {

StatusOr<std::unique_ptr<Model>> Model::Load(
    const std::filesystem::path& folder, const WeightOptions& options, Ops& ops
) {
  const std::filesystem::path config_path = folder / "config.json";
  ASSIGN_OR_RETURN(ConfigReader reader, ConfigReader::Open(config_path));
  ASSIGN_OR_RETURN(const Family* family, FindFamily(reader));
  std::unique_ptr<Model> model(new Model(ops));
  ASSIGN_OR_RETURN(model->config_, family->ReadConfig(reader));
  if (const Status checked = CheckConfig(model->config_); !checked.ok()) {
    return WithContext(checked, config_path.string());
  }
  ASSIGN_OR_RETURN(model->files_, WeightFiles::Open(folder));
  WeightLoader weights(*model->files_, options, ops);
  if (model->config_.vocabulary_size == 0) {
    ASSIGN_OR_RETURN(model->config_.vocabulary_size, weights.RowsOf(family->embedding_tensor));
  }
  ASSIGN_OR_RETURN(Decoder decoder, family->BuildDecoder(model->config_, weights, ops));
  RETURN_IF_ERROR(weights.CheckAllUsed());

  model->summary_ = weights.summary();
  model->embedding_ = decoder.embedding;
  model->blocks_ = std::move(decoder.blocks);
  model->final_norm_ = decoder.final_norm;
  model->head_ = decoder.head;
  model->head_bias_ = decoder.head_bias;
  for (const std::unique_ptr<Block>& block : model->blocks_) {
    for (const Router* router : block->attention().Routers()) {
      model->routers_.push_back(router);
    }
    for (const Router* router : block->feed_forward().Routers()) {
      model->routers_.push_back(router);
    }
  }
  return model;
}

KvLayout Model::kv_layout() const {
  return {
      .layers = config_.layers,
      .kv_heads = config_.attention.kv_heads,
      .key_dim = config_.attention.key_dim,
      .value_dim = config_.attention.value_dim,
  };
}

int64_t Model::ScratchBytes(int64_t max_step_tokens, int64_t max_logit_rows) const {
  int64_t block_bytes = 0;
  for (const std::unique_ptr<Block>& block : blocks_) {
    block_bytes = std::max(block_bytes, block->ScratchBytes(max_step_tokens, config_.model_dim));
  }
  return ScratchBytesFor(DType::kF32, {max_step_tokens, config_.model_dim}) +
         std::max(block_bytes, ScratchBytesFor(DType::kF32, {max_logit_rows, config_.model_dim}));
}

void Model::Forward(
    const StepBatch& batch,
    KvCache& cache,
    Scratch& scratch,
    TensorView logits,
    ForwardObserver* observer
) const {
  const Scratch::Scope scope(scratch);
  const TensorView x = scratch.Floats({batch.tokens, config_.model_dim});  // the residual stream
  ops_.Embed(embedding_, batch.token_ids, config_.embedding_scale, x);
  if (observer != nullptr) {
    observer->OnEmbedding(x);
  }

  for (size_t layer = 0; layer < blocks_.size(); ++layer) {
    const auto index = static_cast<int64_t>(layer);
    blocks_[layer]->Forward(batch, cache.Layer(index), scratch, x, observer);
    if (observer != nullptr) {
      observer->OnHidden(index, x);
    }
  }

  const int64_t rows = batch.logit_rows.dim(0);
  if (rows == 0) {
    return;  // a step of prefill chunks that do not reach their last token
  }
  const TensorView normed = scratch.Floats({rows, config_.model_dim});
  ops_.Normalize(
      {
          .kind = config_.norm.kind,
          .weight = final_norm_.weight,
          .bias = final_norm_.bias,
          .epsilon = config_.norm.final_epsilon,
          .rows = batch.logit_rows,
      },
      x,
      normed
  );
  ops_.MatMul({.weight = head_, .bias = head_bias_}, normed, logits);
}

}  // namespace switchyard
