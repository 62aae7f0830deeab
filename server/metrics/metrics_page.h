#pragma once

#include <string>

#include "server/serving_state.h"

namespace switchyard {

// What Prometheus reads. Before there is a model, only what is true without one.
std::string MetricsPage(ServingState& state);

}  // namespace switchyard
