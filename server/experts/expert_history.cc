#include "server/experts/expert_history.h"

#include <algorithm>
#include <cstddef>
#include <functional>

#include "base/check.h"

namespace switchyard {
namespace {

// Copies are so many to a window.
constexpr double kMomentsPerWindow = 10;

}  // namespace

ExpertStatistics Difference(const ExpertStatistics& later, const ExpertStatistics& earlier) {
  CHECK(later.routers.size() == earlier.routers.size());
  ExpertStatistics difference = later;
  for (size_t i = 0; i < difference.routers.size(); ++i) {
    RouterStatistics& router = difference.routers[i];
    const RouterStatistics& before = earlier.routers[i];
    std::ranges::transform(router.tokens, before.tokens, router.tokens.begin(), std::minus<>());
    std::ranges::transform(
        router.gate_sum, before.gate_sum, router.gate_sum.begin(), std::minus<>()
    );
    std::ranges::transform(
        router.margin_sum, before.margin_sum, router.margin_sum.begin(), std::minus<>()
    );
  }
  return difference;
}

void ExpertHistory::Add(const ExpertSnapshot& snapshot) {
  if (snapshot->routers.empty()) {
    return;
  }
  const double uptime = snapshot->uptime_seconds;
  const MutexLock lock(mutex_);
  for (Trail& trail : trails_) {
    // A little less, because the copies do not come to the microsecond.
    const double spacing = 0.9 * trail.window_seconds / kMomentsPerWindow;
    if (uptime - trail.moments.back().uptime_seconds < spacing) {
      continue;
    }
    trail.moments.push_back({uptime, snapshot});
    while (trail.moments[1].uptime_seconds <= uptime - trail.window_seconds) {
      trail.moments.pop_front();
    }
  }
}

void ExpertHistory::Reset(const ExpertSnapshot& snapshot) {
  const MutexLock lock(mutex_);
  reset_ = {snapshot->uptime_seconds, snapshot};
}

WindowedStatistics ExpertHistory::Window(ExpertWindow window, const ExpertStatistics& latest)
    const {
  Moment begin;
  {
    const MutexLock lock(mutex_);
    begin = Begin(window, latest.uptime_seconds);
  }
  const double seconds = std::max(0.0, latest.uptime_seconds - begin.uptime_seconds);
  if (begin.snapshot == nullptr) {
    return {.statistics = latest, .window_seconds = seconds};
  }
  return {.statistics = Difference(latest, *begin.snapshot), .window_seconds = seconds};
}

ExpertHistory::Moment ExpertHistory::Begin(ExpertWindow window, double uptime_seconds) const {
  if (window == ExpertWindow::kLife) {
    return {};
  }
  if (window == ExpertWindow::kSinceReset) {
    return reset_;
  }
  const Trail& trail =
      trails_[static_cast<size_t>(window) - static_cast<size_t>(ExpertWindow::kTenSeconds)];
  Moment begin = trail.moments.front();
  for (const Moment& moment : trail.moments) {
    if (moment.uptime_seconds <= uptime_seconds - trail.window_seconds) {
      begin = moment;
    }
  }
  return begin;
}

}  // namespace switchyard
