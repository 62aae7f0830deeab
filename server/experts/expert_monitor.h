#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <utility>

#include "base/mutex.h"
#include "base/status.h"
#include "engine/engine.h"
#include "server/experts/expert_baseline.h"
#include "server/experts/expert_history.h"
#include "switchyard/v1/experts.pb.h"

namespace switchyard {

// How long a reader waits for the engine, and how old a copy it takes instead of asking.
struct ExpertFreshness {
  std::chrono::milliseconds timeout{5000};
  std::chrono::milliseconds max_age{0};
};

// The one place from which every door reads expert counts, so that none costs the engine more than
// a copy between two steps. Thread-safe.
class ExpertMonitor {
 public:
  explicit ExpertMonitor(std::function<Clock::time_point()> now) : now_(std::move(now)) {}

  // What drift is measured from, until the end; null: nothing. Requires: it is of the routers whose
  // counts are asked for.
  void SetBaseline(std::shared_ptr<const ExpertBaseline> baseline);

  // A copy of all counts. DEADLINE_EXCEEDED when the engine does not answer.
  StatusOr<ExpertSnapshot> Snapshot(Engine& engine, const ExpertFreshness& freshness);

  // What `request` asks for, up to the moment of `latest`. INVALID_ARGUMENT for a window, layer,
  // kind or phase that there is not.
  StatusOr<v1::GetExpertStatsResponse> Answer(
      const ExpertStatistics& latest, const v1::GetExpertStatsRequest& request
  ) const;

  // Remembers the counts of this moment for sliding windows. To be called every second.
  Status Sample(Engine& engine);

  // WINDOW_SINCE_RESET begins now.
  Status Reset(Engine& engine);

 private:
  const std::function<Clock::time_point()> now_;
  ExpertHistory history_;
  mutable Mutex mutex_;
  std::shared_ptr<const ExpertBaseline> baseline_ ABSL_GUARDED_BY(mutex_);
  ExpertSnapshot latest_ ABSL_GUARDED_BY(mutex_);  // null at first
  Clock::time_point latest_at_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace switchyard
