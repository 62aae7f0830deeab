#include "engine/engine_core.h"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "engine/capacity.h"
#include "engine/largest_step.h"
#include "engine/make_sequences.h"
#include "engine/request_check.h"
#include "engine/warm_up.h"

namespace switchyard {
namespace {

// A config may name an end-of-sequence token that its vocabulary does not have; it can never be
// chosen.
std::vector<int32_t> KnownEosIds(const ModelConfig& config) {
  std::vector<int32_t> ids = config.eos_ids;
  std::erase_if(ids, [&config](int32_t id) { return id < 0 || id >= config.vocabulary_size; });
  return ids;
}

// What this thread has computed. Time in which the system gives its core to another thread, as the
// RPCs' own, is no cost of scheduling.
int64_t ThreadCpuNanoseconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

int64_t Nanoseconds(Clock::duration duration) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(duration).count();
}

}  // namespace

StatusOr<std::unique_ptr<EngineCore>> EngineCore::Create(
    std::unique_ptr<Model> model, const EngineOptions& options, Now now
) {
  RETURN_IF_ERROR(CheckOptions(options, model->config().context_tokens));
  EngineOptions sized = options;
  ASSIGN_OR_RETURN(sized.kv_cache_bytes, DecideKvCacheBytes(*model, options));
  ASSIGN_OR_RETURN(const int32_t blocks, CountBlocks(sized, model->kv_layout()));
  std::unique_ptr<EngineCore> core(new EngineCore(std::move(model), sized, std::move(now), blocks));
  ASSIGN_OR_RETURN(
      core->runner_, StepRunner::Create(*core->model_, core->stop_checker_, options.limits, blocks)
  );
  LogInfo(
      "event=engine_ready blocks={} block_tokens={} kv_bytes_per_token={} kv_tokens_total={}",
      blocks,
      options.limits.block_tokens,
      core->model_->kv_layout().BytesPerToken(),
      int64_t{blocks} * options.limits.block_tokens
  );
  return core;
}

EngineCore::EngineCore(
    std::unique_ptr<Model> model, const EngineOptions& options, Now now, int32_t blocks
)
    : model_(std::move(model)),
      options_(options),
      now_(std::move(now)),
      created_at_(now_()),
      scheduler_(options.limits),
      stop_checker_(KnownEosIds(model_->config()), model_->config().context_tokens),
      requests_(blocks, options),
      beam_runner_(requests_) {
  const auto max_running = static_cast<size_t>(options.limits.max_running);
  state_.running.reserve(max_running);
  state_.waiting.reserve(max_running);
  plan_.slices.reserve(max_running);
  plan_.admitted.reserve(max_running);
  work_.slices.reserve(max_running);
  work_.copies.reserve(max_running);
}

StatusOr<std::unique_ptr<Sequence>> EngineCore::Accept(RequestId id, GenerationRequest request)
    const {
  CHECK(request.sink != nullptr) << "request " << static_cast<uint64_t>(id) << " has no sink";
  const ModelConfig& config = model_->config();
  RETURN_IF_ERROR(CheckRequest(
      request,
      {.vocabulary_size = config.vocabulary_size,
       .context_tokens = config.context_tokens,
       .max_running = std::min(options_.limits.max_running, options_.limits.max_step_tokens),
       .total_blocks = requests_.Load().total_blocks,
       .block_tokens = options_.limits.block_tokens}
  ));
  request.prefix_sharing.enabled = request.prefix_sharing.enabled && options_.prefix_cache;
  const SequenceContext making{
      .context_tokens = config.context_tokens,
      .block_tokens = options_.limits.block_tokens,
      .now = now_()};
  if (request.beam_search.has_value()) {
    return MakeBeamSearch(id, std::move(request), KnownEosIds(config), making);
  }
  return MakeSequences(id, std::move(request), making);
}

Status EngineCore::WarmUp() {
  return RunWarmUp(model_->config(), options_.limits.block_tokens, requests_.pool(), *runner_);
}

bool EngineCore::Step() {
  const Clock::time_point now = now_();
  const int64_t cpu_at_start = ThreadCpuNanoseconds();
  requests_.ExpireDeadlines(now);
  requests_.Describe(now, scheduler_, state_);
  scheduler_.Plan(state_, plan_);
  requests_.Apply(plan_, now, work_);
  if (work_.slices.empty()) {
    return false;
  }
  const PhaseTokens tokens = CountPhaseTokens(work_.slices);
  runner_->Prepare(work_);
  const int64_t cpu_when_planned = ThreadCpuNanoseconds();
  const Status status = runner_->Run(work_);
  const int64_t cpu_when_computed = ThreadCpuNanoseconds();
  if (status.ok()) {
    Deliver(now_());
  } else {
    FailSlices(status);
  }
  requests_.RemoveFinished();
  const Clock::duration whole = now_() - now;
  step_statistics_.CountStep(tokens, 1e-9 * static_cast<double>(Nanoseconds(whole)));
  const int64_t model_cpu = cpu_when_computed - cpu_when_planned;
  CountStep(whole, ThreadCpuNanoseconds() - cpu_at_start - model_cpu);
  LogStep();
  return true;
}

void EngineCore::CountStep(Clock::duration whole, int64_t scheduling_cpu_ns) {
  steps_.fetch_add(1, std::memory_order_relaxed);
  step_ns_.fetch_add(Nanoseconds(whole), std::memory_order_relaxed);
  scheduling_ns_.fetch_add(scheduling_cpu_ns, std::memory_order_relaxed);
}

EngineLoad EngineCore::Load() const {
  EngineLoad load = requests_.Load();
  load.not_finite_total = not_finite_logits_.load(std::memory_order_relaxed);
  load.steps_total = steps_.load(std::memory_order_relaxed);
  load.step_seconds_total = 1e-9 * static_cast<double>(step_ns_.load(std::memory_order_relaxed));
  load.scheduling_seconds_total =
      1e-9 * static_cast<double>(scheduling_ns_.load(std::memory_order_relaxed));
  return load;
}

void EngineCore::Deliver(Clock::time_point now) {
  runner_->routing().Tell();
  DeliverScores(now);
  size_t row = 0;
  for (const SequenceSlice& slice : work_.slices) {
    row += slice.planned.samples ? 1 : 0;
    if (slice.sequence->state == SequenceState::kFinished) {
      continue;  // what was to be scored is not finite
    }
    if (!slice.planned.samples) {
      requests_.Computed(slice);
      continue;
    }
    const Selection selection = runner_->Chosen(row - 1);
    if (selection.id < 0) {
      FailSelection(*slice.sequence, selection, now);
      continue;
    }
    requests_.Computed(slice);
    DeliverToken(*slice.sequence, selection, now);
  }
}

void EngineCore::DeliverScores(Clock::time_point now) {
  const std::span<const ScoredToken> scored = runner_->scored();
  for (size_t i = 0; i < scored.size(); ++i) {
    Sequence& sequence = *scored[i].sequence;
    const ScoredValue value = runner_->Scored(i);
    if (sequence.state == SequenceState::kFinished) {
      continue;
    }
    if (!value.is_finite) {
      FailSelection(sequence, {.id = kLogitsNotFinite, .top = {}}, now);
      continue;
    }
    sequence.next_scored = scored[i].position + 1;
    sequence.request.sink->OnPromptToken(
        {.completion = sequence.completion,
         .id = sequence.tokens[static_cast<size_t>(scored[i].position)],
         .logprob = value.logprob,
         .top = value.top}
    );
  }
}

void EngineCore::DeliverToken(
    Sequence& sequence, const Selection& selection, Clock::time_point now
) {
  requests_.ReleaseFollowers(sequence);
  if (sequence.beams != nullptr) {
    beam_runner_.Report(sequence, selection, now);
    return;
  }
  if (sequence.only_scores) {
    FinishEvent event = sequence.Finish(now);
    event.reason = FinishReason::kScored;
    requests_.Finish(sequence, event);
    return;
  }
  sequence.Append(selection.id);
  const Clock::duration since_previous =
      now - (sequence.first_token_at ? sequence.last_token_at : sequence.submitted_at);
  sequence.last_token_at = now;
  if (!sequence.first_token_at.has_value()) {
    sequence.first_token_at = now;
  }
  const std::optional<StopMatch> match = stop_checker_.Check(sequence);
  const bool is_stop_token = match.has_value() && match->reason == FinishReason::kStop;
  const Verdict verdict = sequence.request.sink->OnToken(
      {.completion = sequence.completion,
       .id = selection.id,
       .logprob = selection.logprob,
       .top = selection.top,
       .completion_tokens = sequence.CompletionTokens(),
       .is_stop_token = is_stop_token,
       .since_previous = since_previous}
  );
  if (!match.has_value() && verdict == Verdict::kContinue) {
    return;
  }
  FinishEvent event = sequence.Finish(now);
  if (is_stop_token) {
    event.stop_token_id = match->token_id;
    event.stop_is_eos = match->is_eos;
  }
  // A stop string that ends with the last token allowed is still a stop.
  const bool stopped = is_stop_token || verdict == Verdict::kStop;
  event.reason = stopped ? FinishReason::kStop : FinishReason::kLength;
  requests_.Finish(sequence, event);
}

void EngineCore::FailSelection(
    Sequence& sequence, const Selection& selection, Clock::time_point now
) {
  if (selection.id == kEveryTokenForbidden) {
    FinishWithError(
        sequence,
        InvalidArgument(
            "no token is left to choose after ",
            sequence.CompletionTokens(),
            " tokens of the completion: allowed tokens, bad words, n-grams that may not repeat and "
            "min_tokens, which holds back what ends a completion, forbid all ",
            model_->config().vocabulary_size,
            "; loosen one of them"
        ),
        now
    );
    return;
  }
  requests_.Quarantine(sequence);
  not_finite_logits_.fetch_add(1, std::memory_order_relaxed);
  LogWarning(
      "event=logits_not_finite request_id={} position={}",
      static_cast<uint64_t>(sequence.id),
      sequence.KnownTokens()
  );
  FinishWithError(
      sequence,
      Internal(
          "no token can be chosen for position ",
          sequence.KnownTokens(),
          ": the model's logits are not finite; other requests go on"
      ),
      now
  );
}

void EngineCore::FailSlices(const Status& status) {
  const Clock::time_point now = now_();
  LogError("event=step_failed requests={} status=\"{}\"", work_.slices.size(), MessageOf(status));
  for (const SequenceSlice& slice : work_.slices) {
    requests_.Quarantine(*slice.sequence);
    FinishWithError(
        *slice.sequence, Internal("the device failed in this step: ", MessageOf(status)), now
    );
  }
}

void EngineCore::FinishWithError(Sequence& sequence, Status status, Clock::time_point now) {
  FinishEvent event = sequence.Finish(now);
  event.reason = FinishReason::kError;
  event.status = std::move(status);
  requests_.Finish(sequence, event);
}

ExpertStatistics EngineCore::ReadExpertStatistics() const {
  return {
      .routers = ReadRouterStatistics(*model_),
      .uptime_seconds = std::chrono::duration<double>(now_() - created_at_).count()};
}

void EngineCore::LogStep() const {
  if (!spdlog::should_log(spdlog::level::debug)) {
    return;
  }
  const EngineLoad load = requests_.Load();
  LogDebug(
      "event=step running={} waiting={} available_blocks={} plan={}",
      load.running_requests,
      load.waiting_requests,
      load.available_blocks,
      plan_.ToString()
  );
}

}  // namespace switchyard
