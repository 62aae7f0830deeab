#include "engine/model/model.h"

#include <algorithm>
#include <utility>

#include "engine/model/families/family.h"
#include "engine/model/model_folder.h"
#include "engine/model/weight_files.h"

namespace switchyard {

StatusOr<std::unique_ptr<Model>> Model::Load(
    const std::filesystem::path& folder, const WeightOptions& options, Ops& ops
) {
  const std::filesystem::path config_path = folder / "config.json";
  RETURN_IF_ERROR(CheckInsideFolder(folder, config_path));
  ASSIGN_OR_RETURN(ConfigReader reader, ConfigReader::Open(config_path));
  ASSIGN_OR_RETURN(const Family* family, FindFamily(reader));
  std::unique_ptr<Model> model(new Model(ops));
  RETURN_IF_ERROR(model->ReadConfig(reader, *family, options));
  ASSIGN_OR_RETURN(model->tensors_, WeightFiles::Open(folder));
  RETURN_IF_ERROR(model->Build(*family, options));
  return model;
}

StatusOr<std::unique_ptr<Model>> Model::Load(
    ConfigReader config,
    std::unique_ptr<TensorSource> tensors,
    const WeightOptions& options,
    Ops& ops
) {
  ASSIGN_OR_RETURN(const Family* family, FindFamily(config));
  std::unique_ptr<Model> model(new Model(ops));
  RETURN_IF_ERROR(model->ReadConfig(config, *family, options));
  model->tensors_ = std::move(tensors);
  RETURN_IF_ERROR(model->Build(*family, options));
  return model;
}

Status Model::ReadConfig(ConfigReader& reader, const Family& family, const WeightOptions& options) {
  ASSIGN_OR_RETURN(config_, family.ReadConfig(reader));
  config_.context_tokens = options.context_tokens.value_or(config_.context_tokens);
  if (const Status checked = CheckConfig(config_); !checked.ok()) {
    return WithContext(checked, reader.path().string());
  }
  return OkStatus();
}

Status Model::Build(const Family& family, const WeightOptions& options) {
  WeightLoader weights(*tensors_, options, ops_);
  if (config_.embedding_dim == 0) {
    config_.embedding_dim = config_.model_dim;
  }
  if (config_.vocabulary_size == 0) {
    ASSIGN_OR_RETURN(config_.vocabulary_size, weights.RowsOf(family.embedding_tensor));
  }
  ASSIGN_OR_RETURN(decoder_, family.BuildDecoder(config_, weights, ops_));
  RETURN_IF_ERROR(weights.CheckAllUsed());

  summary_ = weights.summary();
  for (const std::unique_ptr<Block>& block : decoder_.blocks) {
    for (const Router* router : block->attention().Routers()) {
      routers_.push_back(router);
    }
    for (const Router* router : block->feed_forward().Routers()) {
      routers_.push_back(router);
    }
  }
  return OkStatus();
}

KvLayout Model::kv_layout() const {
  return {
      .layers = config_.layers,
      .kv_heads = config_.attention.kv_heads,
      .key_dim = config_.attention.key_dim,
      .value_dim = config_.attention.value_is_key ? 0 : config_.attention.value_dim,
  };
}

int64_t Model::ScratchBytes(int64_t max_step_tokens, int64_t max_logit_rows) const {
  int64_t block_bytes = 0;
  for (const std::unique_ptr<Block>& block : decoder_.blocks) {
    block_bytes = std::max(block_bytes, block->ScratchBytes(max_step_tokens, config_.model_dim));
  }
  // Beside the residual stream: the blocks one after the other, or the embedding or the output
  // before its adapter.
  const int64_t embedding_bytes =
      ScratchBytesFor(DType::kF32, {max_step_tokens, config_.embedding_dim});
  const int64_t output_bytes =
      ScratchBytesFor(DType::kF32, {max_logit_rows, config_.model_dim}) +
      ScratchBytesFor(DType::kF32, {max_logit_rows, config_.embedding_dim});
  return ScratchBytesFor(DType::kF32, {max_step_tokens, config_.model_dim}) +
         std::max({block_bytes, embedding_bytes, output_bytes});
}

void Model::Forward(
    const StepBatch& batch,
    KvCache& cache,
    Scratch& scratch,
    TensorView hidden,
    ForwardObserver* observer
) const {
  Embed(batch, scratch, hidden);
  if (observer != nullptr) {
    observer->OnEmbedding(hidden);
  }

  for (size_t layer = 0; layer < decoder_.blocks.size(); ++layer) {
    const auto index = static_cast<int64_t>(layer);
    decoder_.blocks[layer]->Forward(batch, cache.Layer(index), scratch, hidden, observer);
    if (observer != nullptr) {
      observer->OnHidden(index, hidden);
    }
  }
}

void Model::Embed(const StepBatch& batch, Scratch& scratch, TensorView x) const {
  if (!decoder_.embedding_adapter.weight.exists()) {
    ops_.Embed(decoder_.embedding, batch.token_ids, config_.embedding_scale, x);
    return;
  }
  const Scratch::Scope scope(scratch);
  const TensorView narrow = scratch.Floats({batch.tokens, config_.embedding_dim});
  ops_.Embed(decoder_.embedding, batch.token_ids, /*scale=*/1, narrow);
  const Adapter& adapter = decoder_.embedding_adapter;
  ops_.MatMul({.weight = adapter.weight, .bias = adapter.bias}, narrow, x);
}

void Model::ComputeLogits(TensorView hidden, TensorView rows, Scratch& scratch, TensorView logits)
    const {
  const int64_t row_count = rows.dim(0);
  const Scratch::Scope scope(scratch);
  const bool has_norm = decoder_.final_norm.weight.exists();
  TensorView output = scratch.Floats({row_count, config_.model_dim});
  ops_.Normalize(
      {
          .kind = has_norm ? config_.norm.kind : NormKind::kNone,
          .weight = decoder_.final_norm.weight,
          .bias = decoder_.final_norm.bias,
          .epsilon = config_.norm.final_epsilon,
          .rows = rows,
      },
      hidden,
      output
  );
  if (const Adapter& adapter = decoder_.output_adapter; adapter.weight.exists()) {
    const TensorView narrow = scratch.Floats({row_count, config_.embedding_dim});
    ops_.MatMul({.weight = adapter.weight, .bias = adapter.bias}, output, narrow);
    output = narrow;
  }
  ops_.MatMul({.weight = decoder_.head, .bias = decoder_.head_bias}, output, logits);
}

}  // namespace switchyard
