#include "server/engine_watchdog.h"

#include <utility>

namespace switchyard {

bool EngineWatchdog::IsHanging(const EngineLoad& load, Clock::time_point now) {
  const bool is_idle = load.running_requests == 0 && load.waiting_requests == 0;
  const bool has_moved = std::exchange(heartbeats_, load.heartbeats) != load.heartbeats;
  if (is_idle || has_moved) {
    well_at_ = now;
  }
  return step_timeout_.count() > 0 && now - well_at_ >= step_timeout_;
}

}  // namespace switchyard
