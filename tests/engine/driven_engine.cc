#include "tests/engine/driven_engine.h"

#include <utility>

#include "base/check.h"
#include "kernels/backend.h"

namespace switchyard {

DrivenEngine::DrivenEngine(const Settings& settings)
    : DrivenEngine(settings, *MakeOps({.device = settings.device, .threads = 1})) {}

DrivenEngine::DrivenEngine(const Settings& settings, std::unique_ptr<Ops> ops)
    : ops_(std::move(ops)) {
  auto model = *LoadTinyModel(settings.family, settings.model, *ops_);
  EngineOptions options = OptionsWithBlocks(model->kv_layout(), settings.limits, settings.blocks);
  options.measures_steps = settings.measures_steps;
  core_ = *EngineCore::Create(std::move(model), options, [this] { return now; });
}

std::shared_ptr<RecordingSink> DrivenEngine::Add(GenerationRequest request) {
  auto sink = std::make_shared<RecordingSink>();
  request.sink = sink;
  AddAsItIs(std::move(request));
  return sink;
}

void DrivenEngine::AddAsItIs(GenerationRequest request) {
  auto sequence = core_->Accept(RequestId{++ids_}, std::move(request));
  CHECK(sequence.ok()) << sequence.status();
  core_->Add(*std::move(sequence));
}

void DrivenEngine::RunAll() {
  while (core_->HasWork()) {
    CHECK(core_->Step()) << "requests are left, but nothing to compute";
  }
}

std::vector<int32_t> Prompt(size_t tokens) {
  std::vector<int32_t> prompt(tokens);
  for (size_t i = 0; i < tokens; ++i) {
    prompt[i] = static_cast<int32_t>((7 * i + 5) % 61);
  }
  return prompt;
}

std::vector<int32_t> GreedyTokens(std::vector<int32_t> prompt, int32_t max_tokens) {
  DrivenEngine engine({});
  const auto sink = engine.Add(GreedyRequest(std::move(prompt), max_tokens));
  engine.RunAll();
  return sink->tokens;
}

GenerationRequest GreedyRequest(std::vector<int32_t> prompt, int32_t max_tokens) {
  GenerationRequest request;
  request.prompt = std::move(prompt);
  request.sampling.temperature = 0;
  request.stopping.max_tokens = max_tokens;
  request.stopping.ignore_eos = true;
  return request;
}

EngineOptions OptionsWithBlocks(
    const KvLayout& layout, const SchedulerLimits& limits, int64_t blocks
) {
  EngineOptions options;
  options.limits = limits;
  options.kv_cache_bytes = blocks * limits.block_tokens * layout.BytesPerToken();
  return options;
}

}  // namespace switchyard
