#pragma once

#include <chrono>

#include "base/status.h"

namespace switchyard {

// `status` with a google.rpc.RetryInfo: the same request may be sent again after `delay`.
Status WithRetryDelay(Status status, std::chrono::milliseconds delay);

}  // namespace switchyard
