#pragma once

#include <memory>

#include "base/status.h"
#include "kernels/ops.h"

namespace switchyard {

// UNAVAILABLE when this machine has no such device.
StatusOr<std::unique_ptr<Ops>> MakeCudaOps(int device);

}  // namespace switchyard
