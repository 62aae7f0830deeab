#pragma once

#include <grpcpp/support/status.h>

#include <string>

#include "base/status.h"

namespace switchyard {

// A call's status with its code, message and details (as payloads); UNAVAILABLE also names the
// server at `address`.
Status StatusOfCall(const grpc::Status& status, const std::string& address);

}  // namespace switchyard
