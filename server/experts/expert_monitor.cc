#include "server/experts/expert_monitor.h"

#include <utility>

#include "server/experts/expert_report.h"
#include "server/validation/field_violation.h"

namespace switchyard {
namespace {

StatusOr<ExpertWindow> WindowOf(v1::Window window) {
  switch (window) {
    case v1::WINDOW_UNSPECIFIED:
    case v1::WINDOW_LIFE:
      return ExpertWindow::kLife;
    case v1::WINDOW_10_SECONDS:
      return ExpertWindow::kTenSeconds;
    case v1::WINDOW_1_MINUTE:
      return ExpertWindow::kOneMinute;
    case v1::WINDOW_10_MINUTES:
      return ExpertWindow::kTenMinutes;
    case v1::WINDOW_SINCE_RESET:
      return ExpertWindow::kSinceReset;
    default:
      return FieldViolation(
          "window",
          Concat(
              "is ",
              static_cast<int>(window),
              ", which is no window; use LIFE, 10_SECONDS, 1_MINUTE, 10_MINUTES or SINCE_RESET"
          )
      );
  }
}

}  // namespace

void ExpertMonitor::SetBaseline(std::shared_ptr<const ExpertBaseline> baseline) {
  const MutexLock lock(mutex_);
  baseline_ = std::move(baseline);
}

StatusOr<v1::GetExpertStatsResponse> ExpertMonitor::Answer(
    const ExpertStatistics& latest, const v1::GetExpertStatsRequest& request
) const {
  ASSIGN_OR_RETURN(const ExpertWindow window, WindowOf(request.window()));
  const WindowedStatistics counts = history_.Window(window, latest);
  std::shared_ptr<const ExpertBaseline> baseline;
  {
    const MutexLock lock(mutex_);
    baseline = baseline_;
  }
  ASSIGN_OR_RETURN(
      v1::GetExpertStatsResponse response,
      SelectExpertStats(counts.statistics, request, baseline.get())
  );
  response.set_window(
      request.window() == v1::WINDOW_UNSPECIFIED ? v1::WINDOW_LIFE : request.window()
  );
  response.set_window_seconds(counts.window_seconds);
  return response;
}

Status ExpertMonitor::Sample(Engine& engine) {
  ASSIGN_OR_RETURN(
      const ExpertSnapshot snapshot,
      Snapshot(engine, {.timeout = std::chrono::milliseconds(500), .max_age = {}})
  );
  history_.Add(snapshot);
  return OkStatus();
}

Status ExpertMonitor::Reset(Engine& engine) {
  ASSIGN_OR_RETURN(const ExpertSnapshot snapshot, Snapshot(engine, ExpertFreshness()));
  history_.Reset(snapshot);
  return OkStatus();
}

StatusOr<ExpertSnapshot> ExpertMonitor::Snapshot(Engine& engine, const ExpertFreshness& freshness) {
  {
    const MutexLock lock(mutex_);
    if (latest_ != nullptr && now_() - latest_at_ < freshness.max_age) {
      return latest_;
    }
  }
  ASSIGN_OR_RETURN(ExpertStatistics statistics, engine.SnapshotExpertStatistics(freshness.timeout));
  auto snapshot = std::make_shared<const ExpertStatistics>(std::move(statistics));
  const MutexLock lock(mutex_);
  latest_ = snapshot;
  latest_at_ = now_();
  return ExpertSnapshot(snapshot);
}

}  // namespace switchyard
