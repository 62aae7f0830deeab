#include "tests/gpu/served_model.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "kernels/backend.h"
#include "tests/benchmarks/timing.h"
#include "tests/gpu/random_tensors.h"

namespace switchyard {
namespace {

constexpr int32_t kBlockTokens = 16;
constexpr int32_t kGrowthTokens = 64;
// As it is, recorded, replayed.
constexpr int64_t kWarmUpSteps = 3;

// Room for a token of each request and for as many of prompts.
int64_t StepTokens(const ServedModel::Options& options) {
  return std::max(options.prefill_tokens, 2 * options.max_batch);
}

// Tokens of each request that the cache has room for: while the last prompts are computed, the
// first requests decode already.
int64_t TokensOfRequest(const ServedModel::Options& options) {
  const int64_t prompt_steps =
      options.max_batch * options.context / (StepTokens(options) - options.max_batch) + 1;
  return options.context + prompt_steps + kWarmUpSteps + options.steps + 2;
}

int64_t RoundedToBlocks(int64_t tokens) {
  return (tokens + kBlockTokens - 1) / kBlockTokens * kBlockTokens;
}

}  // namespace

class ServedModel::CountingSink final : public TokenSink {
 public:
  Verdict OnToken(const TokenEvent& /*event*/) override {
    ++tokens;
    return Verdict::kContinue;
  }
  void OnFinished(const FinishEvent& event) override { status = event.status; }

  int64_t tokens = 0;
  Status status;
};

StatusOr<std::unique_ptr<ServedModel>> ServedModel::Create(
    const ModelShape& shape, const Options& options
) {
  std::unique_ptr<ServedModel> model(new ServedModel(shape, options));
  RETURN_IF_ERROR(model->Load());
  return model;
}

Status ServedModel::Load() {
  ASSIGN_OR_RETURN(ops_, MakeOps({.device = options_.device}));
  const auto deviation = static_cast<float>(1 / std::sqrt(static_cast<double>(shape_.model_dim)));
  ASSIGN_OR_RETURN(
      std::unique_ptr<RandomTensors> tensors,
      RandomTensors::Create(*ops_, TensorsOf(shape_), deviation)
  );
  ASSIGN_OR_RETURN(
      std::unique_ptr<Model> model,
      Model::Load(ConfigReader::Of(ConfigOf(shape_), shape_.name), std::move(tensors), {}, *ops_)
  );
  const int64_t decode_tokens =
      options_.max_batch * RoundedToBlocks(TokensOfRequest(options_) + kGrowthTokens);
  const int64_t prefill_tokens = RoundedToBlocks(options_.prefill_tokens + kGrowthTokens + 1);
  EngineOptions engine;
  engine.limits = {
      .max_step_tokens = static_cast<int32_t>(StepTokens(options_)),
      .max_running = static_cast<int32_t>(options_.max_batch),
      .block_tokens = kBlockTokens,
      .growth_tokens = kGrowthTokens};
  engine.kv_cache_bytes =
      std::max(decode_tokens, prefill_tokens) * model->kv_layout().BytesPerToken();
  engine.prefix_cache = false;
  ASSIGN_OR_RETURN(core_, EngineCore::Create(std::move(model), engine, Clock::now));
  return core_->WarmUp();
}

StatusOr<std::shared_ptr<ServedModel::CountingSink>> ServedModel::Add(
    int64_t prompt_tokens, int64_t max_tokens
) {
  ++requests_;
  GenerationRequest request;
  request.prompt.resize(static_cast<size_t>(prompt_tokens));
  for (size_t i = 0; i < request.prompt.size(); ++i) {
    request.prompt[i] = static_cast<int32_t>(
        (i * 7919 + requests_ * 104729) % static_cast<size_t>(shape_.vocabulary_size)
    );
  }
  request.sampling.seed = requests_;
  request.stopping.max_tokens = static_cast<int32_t>(max_tokens);
  request.stopping.ignore_eos = true;
  auto sink = std::make_shared<CountingSink>();
  request.sink = sink;
  ASSIGN_OR_RETURN(auto sequence, core_->Accept(RequestId{requests_}, std::move(request)));
  core_->Add(std::move(sequence));
  return sink;
}

int64_t ServedModel::CountTokens(const std::vector<std::shared_ptr<CountingSink>>& sinks) {
  int64_t tokens = 0;
  for (const auto& sink : sinks) {
    tokens += sink->tokens;
  }
  return tokens;
}

StatusOr<DecodeRow> ServedModel::MeasureDecode(int64_t batch) {
  std::vector<std::shared_ptr<CountingSink>> sinks;
  for (int64_t i = 0; i < batch; ++i) {
    ASSIGN_OR_RETURN(
        std::shared_ptr<CountingSink> sink,
        Add(options_.context, TokensOfRequest(options_) - options_.context)
    );
    sinks.push_back(std::move(sink));
  }
  const auto has_begun = [](const auto& sink) { return sink->tokens > 0; };
  while (!std::all_of(sinks.begin(), sinks.end(), has_begun) && core_->Step()) {
  }
  for (int64_t step = 0; step < kWarmUpSteps; ++step) {
    core_->Step();
  }
  const int64_t tokens_before = CountTokens(sinks);

  const int64_t bytes_before = ops_->WeightBytesRead();
  int64_t kv_tokens = 0;
  std::vector<double> seconds;
  for (int64_t step = 0; step < options_.steps; ++step) {
    for (const auto& sink : sinks) {
      kv_tokens += options_.context + sink->tokens + 1;  // one is stored
    }
    const Clock::time_point begin = Clock::now();
    core_->Step();
    seconds.push_back(std::chrono::duration<double>(Clock::now() - begin).count());
  }
  const auto steps = static_cast<double>(options_.steps);
  DecodeRow row = {.batch = batch, .context = options_.context, .steps = options_.steps};
  row.weight_bytes = static_cast<double>(ops_->WeightBytesRead() - bytes_before) / steps;
  row.kv_bytes =
      static_cast<double>(kv_tokens * core_->model().kv_layout().BytesPerToken()) / steps;
  std::sort(seconds.begin(), seconds.end());
  row.step_seconds = seconds[(seconds.size() - 1) / 2];
  core_->CancelAll();
  for (const auto& sink : sinks) {
    RETURN_IF_ERROR(sink->status);
  }
  if (const int64_t tokens = CountTokens(sinks) - tokens_before; tokens != batch * row.steps) {
    return Internal(tokens, " tokens came of ", row.steps, " steps of ", batch, " requests");
  }
  return row;
}

StatusOr<PrefillRow> ServedModel::MeasurePrefill(int repeats) {
  Status status;
  const double seconds = MedianSeconds(repeats, [&] {
    const auto sink = Add(options_.prefill_tokens, 1);
    status = sink.ok() ? status : sink.status();
    while (core_->HasWork()) {
      core_->Step();
    }
    status = sink.ok() && !(*sink)->status.ok() ? (*sink)->status : status;
  });
  RETURN_IF_ERROR(status);
  return PrefillRow{.tokens = options_.prefill_tokens, .seconds = seconds};
}

}  // namespace switchyard
