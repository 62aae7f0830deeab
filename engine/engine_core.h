#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/status.h"
#include "engine/active_requests.h"
#include "engine/beam_runner.h"
#include "engine/engine.h"
#include "engine/expert_statistics.h"
#include "engine/model/model.h"
#include "engine/request.h"
#include "engine/scheduler.h"
#include "engine/sequence.h"
#include "engine/step_runner.h"
#include "engine/step_statistics.h"
#include "engine/stop_checker.h"

namespace switchyard {

// The engine without its thread: one step at a time, so that tests drive it by hand. Used by one
// thread at a time, except where a method says otherwise. Calls sinks from inside Step, Cancel and
// CancelAll.
class EngineCore {
 public:
  using Now = std::function<Clock::time_point()>;

  // As Engine::Create. The model's Ops must outlive this.
  static StatusOr<std::unique_ptr<EngineCore>> Create(
      std::unique_ptr<Model> model, const EngineOptions& options, Now now
  );

  // The request as the engine keeps it: its first completion, with the others as followers.
  // INVALID_ARGUMENT when it could never run. Safe from any thread.
  StatusOr<std::unique_ptr<Sequence>> Accept(RequestId id, GenerationRequest request) const;

  // Requires: no request is running.
  Status WarmUp();

  void Add(std::unique_ptr<Sequence> sequence) { requests_.Add(std::move(sequence)); }
  // Ends the request in whatever state it is; unknown ids are ignored.
  void Cancel(RequestId id) { requests_.Cancel(id, now_()); }
  void CancelAll() { requests_.CancelAll(now_()); }

  // Ends what is past its deadline, then plans and runs one step. False when there was nothing to
  // compute.
  bool Step();

  bool HasWork() const { return !requests_.empty(); }
  std::optional<Clock::time_point> NearestDeadline() const { return requests_.NearestDeadline(); }

  ExpertStatistics ReadExpertStatistics() const;

  // Safe from any thread.
  EngineLoad Load() const;
  const StepStatistics& step_statistics() const { return step_statistics_; }
  const Model& model() const { return *model_; }
  const EngineOptions& options() const { return options_; }

 private:
  EngineCore(std::unique_ptr<Model> model, const EngineOptions& options, Now now, int32_t blocks);

  void Deliver(Clock::time_point now);
  void DeliverScores(Clock::time_point now);
  void CountStep(Clock::duration whole, int64_t scheduling_cpu_ns);
  void DeliverToken(Sequence& sequence, const Selection& selection, Clock::time_point now);
  // Ends a sequence for which the sampler had nothing to choose.
  void FailSelection(Sequence& sequence, const Selection& selection, Clock::time_point now);
  // Ends the requests of this step, none of which can be trusted any more.
  void FailSlices(const Status& status);
  void FinishWithError(Sequence& sequence, Status status, Clock::time_point now);
  void LogStep() const;

  std::unique_ptr<Model> model_;
  EngineOptions options_;
  Now now_;
  Clock::time_point created_at_;
  Scheduler scheduler_;
  StopChecker stop_checker_;
  ActiveRequests requests_;
  BeamRunner beam_runner_;
  std::unique_ptr<StepRunner> runner_;
  std::atomic<int64_t> not_finite_logits_ = 0;  // requests; written by the engine thread

  // Of the current step; kept for their memory.
  SchedulerState state_;
  StepPlan plan_;
  StepWork work_;

  StepStatistics step_statistics_;
  std::atomic<int64_t> steps_ = 0;
  std::atomic<int64_t> step_ns_ = 0;
  std::atomic<int64_t> scheduling_ns_ = 0;
};

}  // namespace switchyard
