#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "base/status.h"
#include "kernels/ops.h"

namespace switchyard {

// How long verbs take on a device when many are queued one behind the other: as a graph where the
// backend makes some, so that queuing them is no part of it.
class KernelTimer {
 public:
  struct Options {
    int repeats = 7;
    int64_t bytes_per_repeat = 0;  // calls of one measurement move about so much; at least two
  };
  // `ops` must outlive this.
  KernelTimer(Ops& ops, const Options& options);

  // Seconds of one call that moves `bytes` bytes; call(i) is the i-th of a measurement.
  StatusOr<double> Queued(int64_t bytes, const std::function<void(int64_t)>& call);
  // Of one call that waits for the device by itself.
  StatusOr<double> Waiting(const std::function<void()>& call);

 private:
  Ops& ops_;
  Options options_;
  std::unique_ptr<VerbRecorder> recorder_;  // null: nothing is recorded
  uint64_t recordings_ = 0;
};

}  // namespace switchyard
