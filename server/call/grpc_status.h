#pragma once

#include <grpcpp/support/status.h>

#include "base/status.h"

namespace switchyard {

// The same code and message; payloads become google.rpc.Status details. UNKNOWN says nothing to a
// client and would be a fault of ours, so it leaves as INTERNAL.
grpc::Status ToGrpcStatus(const Status& status);

}  // namespace switchyard
