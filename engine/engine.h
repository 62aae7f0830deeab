#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>

#include "base/status.h"
#include "engine/expert_statistics.h"
#include "engine/model/model.h"
#include "engine/request.h"
#include "engine/scheduler.h"
#include "engine/step_statistics.h"

namespace switchyard {

struct EngineOptions {
  SchedulerLimits limits;
  int64_t kv_cache_bytes = int64_t{256} << 20;
  // Of the memory that is free when weights and steps have theirs, in place of kv_cache_bytes.
  std::optional<double> kv_cache_percent = {};
  // Where a backend keeps memory for its verbs: run the largest steps once, so that it has all of
  // it before the KV cache takes the rest.
  bool measures_steps = true;
  int32_t max_queued_requests = 256;  // waiting; more are refused
  // Waiting for so long raises a request's priority by one; 0: never.
  std::chrono::milliseconds ageing{10'000};
  bool prefix_cache = true;  // false: as if no request allowed prefix sharing
};

struct EngineLoad {
  int32_t running_requests = 0;
  int32_t waiting_requests = 0;
  int32_t available_blocks = 0;  // held by no request
  int32_t cached_blocks = 0;     // of those, the ones that keep a prefix which may come again
  int32_t total_blocks = 0;

  // Since the engine was made.
  int64_t steps_total = 0;
  int64_t preempted_total = 0;
  int64_t not_finite_total = 0;            // requests that ended because of their logits
  int64_t cached_prompt_tokens_total = 0;  // prompt tokens that the prefix cache had
  double step_seconds_total = 0;
  // Processor time of the engine thread in them outside the model and the sampler: planning,
  // blocks, results.
  double scheduling_seconds_total = 0;

  // Grows whenever the engine thread finishes what it was doing, at least with every step: while
  // there is work and this stands still, one step is taking long.
  int64_t heartbeats = 0;
};

// Runs requests through the model: one thread that drains the inbox, plans a step, runs it,
// samples, and hands tokens to each request's sink. All methods may be called from any thread.
class Engine {
 public:
  // RESOURCE_EXHAUSTED when the KV cache or the memory of steps does not fit, INVALID_ARGUMENT when
  // the KV cache is less than one block.
  static StatusOr<std::unique_ptr<Engine>> Create(
      std::unique_ptr<Model> model, const EngineOptions& options
  );
  // Stops the thread; every request that is still there ends with kCancelled.
  virtual ~Engine() = default;

  // Runs one prompt token and one decode through the model so that everything is paged in, counted
  // as warm-up.
  virtual Status WarmUp() = 0;

  // Takes the request, or says why not: RESOURCE_EXHAUSTED when the queue is full, INVALID_ARGUMENT
  // when it could never fit the KV cache even alone, UNAVAILABLE after Stop. The sink is called
  // only if this returns an id, perhaps before it does.
  virtual StatusOr<RequestId> Submit(GenerationRequest request) = 0;

  // Ends the request before the next step, in whatever state it is; unknown and finished ids are
  // ignored.
  virtual void Cancel(RequestId id) = 0;

  // Refuses new requests, finishes the running ones until `deadline`, then cancels what is left and
  // stops the thread.
  virtual void Stop(Clock::time_point deadline) = 0;

  // Copies the counters between two steps. DEADLINE_EXCEEDED when the engine thread does not answer
  // within `timeout`.
  virtual StatusOr<ExpertStatistics> SnapshotExpertStatistics(std::chrono::milliseconds timeout
  ) = 0;

  virtual EngineLoad Load() const = 0;
  virtual const StepStatistics& step_statistics() const = 0;

  // Immutable facts, safe from any thread.
  virtual const Model& model() const = 0;
  virtual const EngineOptions& options() const = 0;
};

}  // namespace switchyard
