#pragma once

#include <chrono>
#include <cstdint>

#include "engine/engine.h"

namespace switchyard {

// Tells an engine that hangs from one that is busy or idle: with work pending, some step must
// finish within the timeout. Knows only what it is told. Thread-compatible.
class EngineWatchdog {
 public:
  // 0: no engine ever hangs.
  explicit EngineWatchdog(std::chrono::milliseconds step_timeout) : step_timeout_(step_timeout) {}

  // Whether the engine hangs; to be asked more often than the timeout is long.
  bool IsHanging(const EngineLoad& load, Clock::time_point now);
  // When it last was idle or had finished another step, as IsHanging saw it.
  Clock::time_point well_at() const { return well_at_; }

 private:
  const std::chrono::milliseconds step_timeout_;
  int64_t heartbeats_ = -1;
  Clock::time_point well_at_;
};

}  // namespace switchyard
