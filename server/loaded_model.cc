#include "server/loaded_model.h"

#include <algorithm>
#include <optional>
#include <system_error>
#include <utility>

#include "base/log.h"
#include "server/model_info.h"

namespace switchyard {
namespace {

std::string FolderName(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::path whole = std::filesystem::weakly_canonical(folder, error);
  if (error) {
    whole = folder;
  }
  // "models/x/" ends in an empty name.
  return (whole.has_filename() ? whole : whole.parent_path()).filename().string();
}

// Null when the folder has no tokenizer: such a model is served by token ids alone.
StatusOr<std::unique_ptr<Tokenizer>> LoadTokenizerIfAny(
    const std::filesystem::path& folder, const ModelConfig& config
) {
  const TokenizerDefaults defaults{
      .add_bos = config.adds_bos,
      .bos_id = config.bos_id,
      .eos_id = config.eos_ids.empty() ? std::nullopt : std::optional<int32_t>(config.eos_ids[0])};
  StatusOr<std::unique_ptr<Tokenizer>> tokenizer = LoadTokenizer(folder, defaults);
  if (tokenizer.status().code() == StatusCode::kNotFound) {
    LogWarning(
        "event=no_tokenizer folder={} reason=\"{}\"", folder.string(), MessageOf(tokenizer.status())
    );
    return std::unique_ptr<Tokenizer>();
  }
  return tokenizer;
}

bool Contains(const std::vector<int32_t>& ids, int32_t id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

void CollectEosTokenIds(const ModelConfig& config, LoadedModel& loaded) {
  std::vector<int32_t> candidates = loaded.defaults.eos_token_ids;
  if (candidates.empty() && config.eos_ids.empty() && loaded.tokenizer != nullptr) {
    const std::optional<int32_t> eos = loaded.tokenizer->EosId();
    if (eos && *eos < loaded.vocabulary_size) {
      candidates.push_back(*eos);
    }
  }
  loaded.eos_token_ids = config.eos_ids;
  for (const int32_t id : candidates) {
    if (!Contains(loaded.eos_token_ids, id)) {
      loaded.eos_token_ids.push_back(id);
      loaded.extra_eos_token_ids.push_back(id);
    }
  }
}

Status LoadBaseline(const std::filesystem::path& path, LoadedModel& loaded) {
  if (path.empty()) {
    return OkStatus();
  }
  ASSIGN_OR_RETURN(ExpertBaseline baseline, ReadExpertBaseline(path));
  RETURN_IF_ERROR(WithContext(CheckBaselineFits(baseline, loaded.info), path.string()));
  loaded.expert_baseline = std::make_shared<const ExpertBaseline>(std::move(baseline));
  loaded.info.set_has_expert_baseline(true);
  return OkStatus();
}

}  // namespace

StatusOr<std::unique_ptr<LoadedModel>> LoadModel(
    const std::filesystem::path& folder, const LoadOptions& options
) {
  auto loaded = std::make_unique<LoadedModel>();
  loaded->limits = options.limits;
  loaded->engine_limits = options.engine.limits;
  loaded->name = options.name.empty() ? FolderName(folder) : options.name;
  ASSIGN_OR_RETURN(loaded->ops, MakeOps(options.backend));
  ASSIGN_OR_RETURN(
      std::unique_ptr<Model> model, Model::Load(folder, options.weights, *loaded->ops)
  );
  const ModelConfig& config = model->config();
  loaded->vocabulary_size = static_cast<int32_t>(config.vocabulary_size);
  loaded->context_tokens = static_cast<int32_t>(config.context_tokens);

  GenerationDefaults base;
  base.max_tokens = options.default_max_tokens;
  ASSIGN_OR_RETURN(loaded->defaults, ReadGenerationDefaults(folder, loaded->vocabulary_size, base));
  ASSIGN_OR_RETURN(loaded->tokenizer, LoadTokenizerIfAny(folder, config));
  CollectEosTokenIds(config, *loaded);

  ASSIGN_OR_RETURN(loaded->engine, Engine::Create(std::move(model), options.engine));
  RETURN_IF_ERROR(WithContext(loaded->engine->WarmUp(), "warm-up step"));
  loaded->info = DescribeModel(*loaded);
  RETURN_IF_ERROR(LoadBaseline(options.expert_baseline, *loaded));
  return loaded;
}

}  // namespace switchyard
