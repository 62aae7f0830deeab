#include "tests/gpu/kernel_timer.h"

#include <algorithm>

#include "tests/benchmarks/timing.h"

namespace switchyard {
namespace {

constexpr int64_t kMaxCalls = 256;

}  // namespace

KernelTimer::KernelTimer(Ops& ops, const Options& options)
    : ops_(ops), options_(options), recorder_(ops.MakeRecorder()) {}

StatusOr<double> KernelTimer::Queued(int64_t bytes, const std::function<void(int64_t)>& call) {
  const int64_t calls = std::clamp<int64_t>(options_.bytes_per_repeat / bytes, 2, kMaxCalls);
  const uint64_t key = recordings_++;
  const auto run = [&] {
    const auto verbs = [&] {
      for (int64_t i = 0; i < calls; ++i) {
        call(i);
      }
    };
    if (recorder_ == nullptr) {
      verbs();
    } else {
      recorder_->Run(key, verbs);
    }
  };
  run();  // as it is; the next run is recorded, and does not count either
  RETURN_IF_ERROR(ops_.Finish());
  Status status;
  const double seconds = MedianSeconds(options_.repeats, [&] {
    run();
    status = ops_.Finish();
  });
  RETURN_IF_ERROR(status);
  return seconds / static_cast<double>(calls);
}

StatusOr<double> KernelTimer::Waiting(const std::function<void()>& call) {
  const double seconds = MedianSeconds(options_.repeats, call);
  RETURN_IF_ERROR(ops_.Finish());
  return seconds;
}

}  // namespace switchyard
