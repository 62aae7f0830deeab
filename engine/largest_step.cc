#include "engine/largest_step.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "base/log.h"
#include "engine/step_runner.h"

namespace switchyard {
namespace {

// As many as a request may ask of a server.
constexpr int32_t kTopLogprobs = 20;

// The sequences of one step. All of their blocks are the same one: what is computed is of no use.
class Rehearsal {
 public:
  Rehearsal(const Model& model, const SchedulerLimits& limits)
      : context_tokens_(model.config().context_tokens), block_tokens_(limits.block_tokens) {}

  // The last `tokens` of a prompt of `known` tokens.
  void Add(int32_t known, int32_t tokens) {
    GenerationRequest request;
    request.prompt.assign(static_cast<size_t>(known), 0);
    request.sampling.temperature = 0;
    request.sampling.top_logprobs = kTopLogprobs;
    const RequestId id{sequences_.size()};
    sequences_.push_back(
        std::make_unique<Sequence>(id, std::move(request), context_tokens_, block_tokens_)
    );
    Sequence& sequence = *sequences_.back();
    sequence.is_warm_up = true;
    sequence.blocks.assign(static_cast<size_t>(BlocksFor(known, block_tokens_)), BlockId{0});
    work_.slices.push_back(
        {.sequence = &sequence,
         .planned = {.id = id, .first_token = known - tokens, .tokens = tokens, .samples = true}}
    );
  }

  Status Run(StepRunner& runner) {
    runner.Prepare(work_);
    return runner.Run(work_);
  }

 private:
  int64_t context_tokens_;
  int32_t block_tokens_;
  std::vector<std::unique_ptr<Sequence>> sequences_;
  StepWork work_;
};

int32_t MaxSequences(const SchedulerLimits& limits) {
  return std::min(limits.max_running, limits.max_step_tokens);
}

// As many requests as a step takes decode.
Status RunDecodes(const Model& model, const SchedulerLimits& limits, StepRunner& runner) {
  Rehearsal decodes(model, limits);
  for (int32_t s = 0; s < MaxSequences(limits); ++s) {
    decodes.Add(1, 1);
  }
  return decodes.Run(runner);
}

// A prefill of as many tokens as a step takes, decodes of as many requests as it takes, and one
// decode with all of the context behind it.
Status RunLargestSteps(const Model& model, const SchedulerLimits& limits, StepRunner& runner) {
  // Behind a prompt there is room for one token.
  const auto longest = static_cast<int32_t>(model.config().context_tokens - 1);
  Rehearsal prefill(model, limits);
  int32_t tokens_left = limits.max_step_tokens;
  for (int32_t s = 0; s < MaxSequences(limits) && tokens_left > 0; ++s) {
    const int32_t tokens = std::min(tokens_left, longest);
    prefill.Add(tokens, tokens);
    tokens_left -= tokens;
  }
  RETURN_IF_ERROR(prefill.Run(runner));
  RETURN_IF_ERROR(RunDecodes(model, limits, runner));
  Rehearsal last(model, limits);
  last.Add(longest, 1);
  return last.Run(runner);
}

// What the recordings of steps will take beside that of the largest decode, which is made now: its
// shape comes the second time.
StatusOr<int64_t> BytesOfOtherRecordings(
    const Model& model, const SchedulerLimits& limits, StepRunner& runner
) {
  const int64_t recordings = runner.MaxRecordedSteps();
  if (recordings == 0) {
    return 0;
  }
  const int64_t before = model.ops().AvailableBytes();
  RETURN_IF_ERROR(RunDecodes(model, limits, runner));
  const int64_t bytes = std::max<int64_t>(before - model.ops().AvailableBytes(), 0);
  return (recordings - 1) * bytes;
}

void ClearCounters(const Model& model) {
  for (const Router* router : model.routers()) {
    const RouterCounters& counters = router->counters();
    const std::vector<int64_t> zeros(static_cast<size_t>(counters.tokens.elements()));
    model.ops().Upload(zeros.data(), counters.tokens.data(), counters.tokens.bytes());
    model.ops().Upload(zeros.data(), counters.gate_sum.data(), counters.gate_sum.bytes());
    model.ops().Upload(zeros.data(), counters.margin_sum.data(), counters.margin_sum.bytes());
  }
}

// What is free while the memory of steps is there.
StatusOr<int64_t> BytesBesideSteps(const Model& model, const SchedulerLimits& limits) {
  const StopChecker stop_checker({}, model.config().context_tokens);
  ASSIGN_OR_RETURN(
      const std::unique_ptr<StepRunner> runner,
      StepRunner::Create(model, stop_checker, limits, /*blocks=*/1)
  );
  RETURN_IF_ERROR(RunLargestSteps(model, limits, *runner));
  ASSIGN_OR_RETURN(const int64_t recordings_bytes, BytesOfOtherRecordings(model, limits, *runner));
  ClearCounters(model);
  RETURN_IF_ERROR(model.ops().Finish());
  const int64_t cache_bytes = limits.block_tokens * model.kv_layout().BytesPerToken();
  return std::max<int64_t>(model.ops().AvailableBytes() + cache_bytes - recordings_bytes, 0);
}

}  // namespace

StatusOr<int64_t> DecideKvCacheBytes(const Model& model, const EngineOptions& options) {
  const bool measures = options.measures_steps && model.ops().KeepsWorkMemory();
  if (!measures && !options.kv_cache_percent.has_value()) {
    return options.kv_cache_bytes;
  }
  const int64_t before = model.ops().AvailableBytes();
  int64_t left = before;
  if (measures) {
    StatusOr<int64_t> measured = BytesBesideSteps(model, options.limits);
    if (!measured.ok()) {
      return WithContext(
          measured.status(),
          Concat("the largest step, of ", options.limits.max_step_tokens, " tokens")
      );
    }
    left = *measured;
  }
  const int64_t bytes =
      options.kv_cache_percent.has_value()
          ? static_cast<int64_t>(static_cast<double>(left) * *options.kv_cache_percent / 100)
          : options.kv_cache_bytes;
  LogInfo(
      "event=kv_cache_sized free_bytes={} step_bytes={} left_bytes={} bytes={}",
      before,
      before - left,
      left,
      bytes
  );
  if (measures && bytes > left) {
    return ResourceExhausted(
        "a KV cache of ",
        bytes,
        " bytes does not fit: beside the weights the device has ",
        before,
        " bytes, of which steps of ",
        options.limits.max_step_tokens,
        " tokens take ",
        before - left,
        "; give it at most ",
        left,
        ", or allow fewer tokens in a step"
    );
  }
  return bytes;
}

}  // namespace switchyard
