#pragma once

#include <memory>

#include "base/status.h"
#include "kernels/ops.h"

namespace switchyard {

// UNAVAILABLE when this machine has no such device. `graphs`: BackendOptions::cuda_graphs.
StatusOr<std::unique_ptr<Ops>> MakeCudaOps(int device, bool graphs);

}  // namespace switchyard
