#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "engine/engine.h"

namespace switchyard {

// An engine without a model: every request gets the tokens of a script, over and over, until a stop
// token (FakeTokenizer::kEos is the end of sequence), the sink, max_tokens, Cancel or its deadline
// ends it; so does each completion of a request that wants several. Tokens of completion i have
// the log-probability -0.5 / (i + 1), those that are scored -0.5. Has a thread, as the real one.
class FakeEngine final : public Engine {
 public:
  explicit FakeEngine(std::vector<int32_t> script);
  ~FakeEngine() override;

  // No request gets more than this many tokens until it is raised; the default is no limit.
  void HoldAfter(int32_t tokens);
  void Release();
  // Every request ends with kError after this many tokens.
  void FailAfter(int32_t tokens, const Status& status);
  void RefuseWith(const Status& status);
  void SetStatistics(const ExpertStatistics& statistics);

  // Waits until nothing runs.
  void WaitUntilIdle();
  // Waits until `count` requests were taken.
  void WaitUntilSubmitted(int count);
  // As the last Submit got it; without its sink.
  GenerationRequest LastRequest() const;

  Status WarmUp() override { return OkStatus(); }
  StatusOr<RequestId> Submit(GenerationRequest request) override;
  void Cancel(RequestId id) override;
  void Stop(Clock::time_point deadline) override;
  StatusOr<ExpertStatistics> SnapshotExpertStatistics(std::chrono::milliseconds timeout) override;
  EngineLoad Load() const override;
  const StepStatistics& step_statistics() const override { return step_statistics_; }
  // There is none: fails.
  const Model& model() const override;
  const EngineOptions& options() const override { return options_; }

 private:
  struct Running {
    GenerationRequest request;
    int32_t completion = 0;
    std::vector<int32_t> to_score;  // before anything is generated
    int32_t completion_tokens = 0;
    bool cancelled = false;
  };

  void Run();
  // Gives each request its next token; false when none could move.
  bool Step() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // What ends the request before its next token.
  std::optional<FinishEvent> EndBeforeToken(const Running& running) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::optional<FinishEvent> NextToken(Running& running) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static void Score(Running& running);
  Clock::time_point NextDeadline() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::vector<int32_t> script_;
  const EngineOptions options_;
  mutable Mutex mutex_;
  ConditionVariable changed_;
  std::map<std::pair<RequestId, int32_t>, Running> running_ ABSL_GUARDED_BY(mutex_);
  int submitted_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t heartbeats_ ABSL_GUARDED_BY(mutex_) = 0;
  int32_t hold_after_ ABSL_GUARDED_BY(mutex_) = INT32_MAX;
  int32_t fail_after_ ABSL_GUARDED_BY(mutex_) = INT32_MAX;
  Status failure_ ABSL_GUARDED_BY(mutex_);
  Status refusal_ ABSL_GUARDED_BY(mutex_);
  ExpertStatistics statistics_ ABSL_GUARDED_BY(mutex_);
  GenerationRequest last_request_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  StepStatistics step_statistics_;
  std::thread thread_;
};

}  // namespace switchyard
