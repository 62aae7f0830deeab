#pragma once

#include "server/serving_state.h"

namespace httplib {
class Server;
}

namespace switchyard {

// What of HTTP needs no API key where there are keys: the probes and the dashboard without its
// numbers; Prometheus' page too; everything.
enum class HttpOpen : uint8_t { kProbes, kMetrics, kAll };

// Has `server` answer 401 without a key of the server's, and 429 when its limit is used up. `state`
// must outlive `server`.
void GuardPages(ServingState& state, HttpOpen open, httplib::Server& server);

}  // namespace switchyard
