#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "engine/engine.h"
#include "engine/engine_core.h"

namespace switchyard {

// EngineCore on a thread of its own. Other threads leave mail in the inbox, under the one lock
// between them and the engine; the engine thread takes it between steps and sleeps when there is
// neither mail nor work. Thread-safe.
class ThreadedEngine final : public Engine {
 public:
  // RESOURCE_EXHAUSTED when the system gives no thread.
  static StatusOr<std::unique_ptr<ThreadedEngine>> Start(std::unique_ptr<EngineCore> core);
  ~ThreadedEngine() override;

  Status WarmUp() override;
  StatusOr<RequestId> Submit(GenerationRequest request) override;
  void Cancel(RequestId id) override;
  void Stop(Clock::time_point deadline) override;
  StatusOr<ExpertStatistics> SnapshotExpertStatistics(std::chrono::milliseconds timeout) override;
  EngineLoad Load() const override;
  const StepStatistics& step_statistics() const override { return core_->step_statistics(); }
  const Model& model() const override { return core_->model(); }
  const EngineOptions& options() const override { return core_->options(); }

 private:
  // Runs on the engine thread, between two steps.
  using Task = std::function<void(EngineCore&)>;

  explicit ThreadedEngine(std::unique_ptr<EngineCore> core);

  // The engine thread.
  void Run();
  // Sleeps until there is something to do, then empties the inbox into the core. False when the
  // thread must end.
  bool TakeMail(bool has_runnable_work);
  // Until mail comes, a deadline passes or the engine is asked to stop.
  void Sleep() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Asked to stop, and either nothing is left or the time is up. Submitted requests must be in the
  // core already.
  bool MustEnd() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool HasMail() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RunTasks();

  // UNAVAILABLE once the engine thread takes no more; otherwise the task runs for certain.
  Status Post(Task task);

  const std::unique_ptr<EngineCore> core_;

  mutable Mutex mutex_;
  ConditionVariable mail_arrived_;
  std::vector<std::unique_ptr<Sequence>> submitted_ ABSL_GUARDED_BY(mutex_);
  std::vector<RequestId> cancelled_ ABSL_GUARDED_BY(mutex_);
  std::vector<Task> tasks_ ABSL_GUARDED_BY(mutex_);
  std::optional<Clock::time_point> stop_deadline_ ABSL_GUARDED_BY(mutex_);
  bool is_closed_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t last_id_ ABSL_GUARDED_BY(mutex_) = 0;

  std::atomic<int64_t> heartbeats_ =
      0;  // steps that the engine thread has finished, empty ones too

  // The engine thread's own, to empty the inbox without holding the lock or allocating.
  std::vector<RequestId> taken_cancelled_;
  std::vector<Task> taken_tasks_;

  Mutex join_mutex_;  // Stop may be called by several threads
  std::thread thread_ ABSL_GUARDED_BY(join_mutex_);
};

}  // namespace switchyard
