#pragma once

#include "server/serving_state.h"

namespace httplib {
class Server;
}

namespace switchyard {

// Answers each of the pages that http_server.h lists. `state` must outlive `server`.
void AddPages(ServingState& state, httplib::Server& server);

}  // namespace switchyard
