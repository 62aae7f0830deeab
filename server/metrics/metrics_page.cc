#include "server/metrics/metrics_page.h"

#include <chrono>
#include <cstdint>
#include <string>

#include "base/log.h"
#include "server/experts/expert_metrics.h"
#include "server/metrics/metric_families.h"
#include "server/version.h"

namespace switchyard {
namespace {

void AddServer(const ServingState& state, MetricFamilies& families) {
  families.Gauge("build_info", "Always 1");
  families.Add(int64_t{1}, {{"version", kServerVersion}});
  families.Gauge("ready", "Whether the server takes requests: 1 or 0");
  families.Add(int64_t{state.IsServing() ? 1 : 0});
}

// "attn:8,ffn:4"
std::string ByKind(const v1::GetModelInfoResponse& info, int32_t (v1::RouterKind::*value)() const) {
  std::string text;
  for (const v1::RouterKind& kind : info.router_kinds()) {
    text += Concat(text.empty() ? "" : ",", kind.kind(), ":", (kind.*value)());
  }
  return text;
}

void AddModel(const v1::GetModelInfoResponse& info, MetricFamilies& families) {
  families.Gauge("model_info", "Always 1");
  families.Add(
      int64_t{1},
      {{"family", info.family()},
       {"device", info.device()},
       {"dtype", info.dtype()},
       {"experts", ByKind(info, &v1::RouterKind::experts)},
       {"top_k", ByKind(info, &v1::RouterKind::top_k)},
       {"layers", std::to_string(info.layers())},
       {"context_tokens", std::to_string(info.context_tokens())}}
  );
}

void AddLoad(const EngineLoad& load, MetricFamilies& families) {
  families.Gauge("requests_running", "Requests in the engine's steps");
  families.Add(int64_t{load.running_requests});
  families.Gauge("requests_waiting", "Requests that wait for a place in the steps");
  families.Add(int64_t{load.waiting_requests});
  families.Gauge("kv_cache_usage_ratio", "Blocks of the KV cache that requests hold: 0 to 1");
  const int32_t used = load.total_blocks - load.available_blocks;
  families.Add(load.total_blocks > 0 ? static_cast<double>(used) / load.total_blocks : 0.0);
  families.Gauge("kv_blocks", "Blocks of the KV cache");
  families.Add(int64_t{used}, {{"state", "used"}});
  families.Add(int64_t{load.cached_blocks}, {{"state", "cached"}});
  families.Add(int64_t{load.available_blocks} - load.cached_blocks, {{"state", "free"}});
  families.Counter("preemptions_total", "Times that a request gave its blocks back");
  families.Add(load.preempted_total);
  families.Counter("nan_logits_total", "Requests that ended because their logits were not finite");
  families.Add(load.not_finite_total);
}

void AddSteps(const EngineLoad& load, const StepStatistics& steps, MetricFamilies& families) {
  families.Counter("steps_total", "Steps of the engine");
  families.Add(load.steps_total);
  families.Counter("step_seconds_total", "Time in steps");
  families.Add(load.step_seconds_total);
  families.Counter("scheduling_seconds_total", "Of the time in steps, all but the model");
  families.Add(load.scheduling_seconds_total);
  families.Histogram("step_duration_seconds", "Steps by how long they took");
  families.Add(steps.Seconds(StepKind::kPrefill), {{"phase", "prefill"}});
  families.Add(steps.Seconds(StepKind::kDecode), {{"phase", "decode"}});
  families.Add(steps.Seconds(StepKind::kMixed), {{"phase", "mixed"}});
  families.Histogram("step_batch_tokens", "Steps by how many tokens they computed");
  families.Add(steps.BatchTokens());
  families.Counter(
      "prompt_tokens_total", "Prompt tokens, computed once or found in the prefix cache"
  );
  families.Add(steps.Tokens(Phase::kPrefill), {{"source", "computed"}});
  families.Add(load.cached_prompt_tokens_total, {{"source", "cached"}});
  families.Counter("recomputed_tokens_total", "Tokens that were computed again after a preemption");
  families.Add(steps.Tokens(Phase::kRecompute));
}

void AddRequests(ServingState& state, MetricFamilies& families) {
  const RequestMetrics& requests = state.request_metrics();
  families.Counter("generation_tokens_total", "Tokens that were generated for requests");
  families.Add(requests.GeneratedTokens());
  families.Counter("requests_total", "Requests that ended, by outcome");
  for (const FinishReason reason : kFinishReasons) {
    families.Add(requests.Requests(reason), {{"outcome", NameOf(reason)}});
  }
  int64_t refused = 0;
  for (const RefusalReason reason : kRefusalReasons) {
    refused += state.counters().Refusals(reason);
  }
  families.Add(refused, {{"outcome", "rejected"}});
  families.Counter("rejections_total", "Requests that were not begun, by reason");
  for (const RefusalReason reason : kRefusalReasons) {
    families.Add(state.counters().Refusals(reason), {{"reason", NameOf(reason)}});
  }
  families.Counter("stream_stalls_total", "Streams that ended because their client did not read");
  families.Add(state.counters().Stalls());
  families.Gauge("open_streams", "Generations that have not ended, in any state");
  families.Add(int64_t{state.streams().Count()});
  families.Gauge("queued_prompt_tokens", "Prompt tokens of requests that have no token yet");
  families.Add(state.prompts().Tokens());
  families.Histogram("time_to_first_token_seconds", "From acceptance to the first token");
  families.Add(requests.TimeToFirstToken());
  families.Histogram("inter_token_latency_seconds", "From one token of a completion to the next");
  families.Add(requests.InterTokenLatency());
  families.Histogram("request_queue_seconds", "From acceptance to the first step");
  families.Add(requests.Queue());
  families.Histogram("request_duration_seconds", "From acceptance to the end");
  families.Add(requests.Duration());
}

}  // namespace

std::string MetricsPage(ServingState& state) {
  LoadedModel* const model = state.ModelOrNull();
  if (model == nullptr) {
    MetricFamilies families(MetricLabels{});
    AddServer(state, families);
    return families.Text();
  }
  MetricFamilies families(MetricLabels{{"model", model->name}});
  AddServer(state, families);
  AddModel(model->info, families);
  const EngineLoad load = model->engine->Load();
  AddLoad(load, families);
  AddSteps(load, model->engine->step_statistics(), families);
  AddRequests(state, families);
  families.Gauge(
      "engine_heartbeat_age_seconds", "Since the engine last was idle or finished a step"
  );
  families.Add(std::chrono::duration<double>(state.EngineQuietFor()).count());
  if (const Status status = AddExpertMetrics(*model, state, families); !status.ok()) {
    LogWarning("event=expert_metrics_missing reason=\"{}\"", MessageOf(status));
  }
  return families.Text();
}

}  // namespace switchyard
