#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "kernels/ops.h"

namespace switchyard {

struct BackendOptions {
  // cpu, reference, cuda (the first device), cuda:N; auto: cuda where there is one, else cpu
  std::string device = "auto";
  int threads = 0;  // 0: one for each core this process may run on
  // cuda: decode steps that come again are replayed as one graph; false: every kernel is queued
  bool cuda_graphs = true;
};

// Whether MakeOps knows the name. The device itself may still not exist.
bool IsDeviceName(const std::string& device);

// INVALID_ARGUMENT for an unknown device or a number of threads out of 0..1024; UNAVAILABLE for a
// CUDA device that this machine or this program has not. `auto` logs why it took the cpu.
StatusOr<std::unique_ptr<Ops>> MakeOps(const BackendOptions& options);

}  // namespace switchyard
