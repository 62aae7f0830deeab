#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>

#include "base/mutex.h"
#include "engine/expert_statistics.h"

namespace switchyard {

// What time expert counts are of.
enum class ExpertWindow : uint8_t { kLife, kTenSeconds, kOneMinute, kTenMinutes, kSinceReset };

using ExpertSnapshot = std::shared_ptr<const ExpertStatistics>;

// Of one window: the counts in it, and how long it really is.
struct WindowedStatistics {
  ExpertStatistics statistics;
  double window_seconds = 0;
};

// later - earlier. Requires: the same routers.
ExpertStatistics Difference(const ExpertStatistics& later, const ExpertStatistics& earlier);

// Copies of the running counts at moments of the past, from which the counts of sliding windows
// are taken: about ten for each length of window. The time is the copies' own uptime. Thread-safe.
class ExpertHistory {
 public:
  // Requires: `snapshot` is not older than those before it by more than moments: one that comes
  // late is left out.
  void Add(const ExpertSnapshot& snapshot);

  // kSinceReset begins with `snapshot`.
  void Reset(const ExpertSnapshot& snapshot);

  // The counts of the window that ends with `latest`. A window begins at the youngest copy that is
  // old enough; while there is none, at the oldest, which at first is the start of the engine.
  WindowedStatistics Window(ExpertWindow window, const ExpertStatistics& latest) const;

 private:
  // Of one length. A null snapshot is the start of the engine, when all counts were 0.
  struct Moment {
    double uptime_seconds = 0;
    ExpertSnapshot snapshot;
  };
  struct Trail {
    double window_seconds;
    std::deque<Moment> moments;  // ascending, never empty
  };

  Moment Begin(ExpertWindow window, double uptime_seconds) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable Mutex mutex_;
  std::array<Trail, 3> trails_ ABSL_GUARDED_BY(mutex_
  ) = {{{10, {Moment()}}, {60, {Moment()}}, {600, {Moment()}}}};
  Moment reset_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace switchyard
