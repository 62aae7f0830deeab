#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "kernels/ops.h"

namespace switchyard {

struct BackendOptions {
  std::string device = "auto";  // auto, cpu, reference
  int threads = 0;              // 0: one for each core this process may run on
};

// INVALID_ARGUMENT for an unknown device or a number of threads out of 0..1024.
StatusOr<std::unique_ptr<Ops>> MakeOps(const BackendOptions& options);

}  // namespace switchyard
