#pragma once

#include <string>
#include <utility>
#include <vector>

#include "clients/cpp/client.h"

namespace switchyard {

// What a server counts itself, by name, since it was started: a load's own part is the difference
// of a reading before it and one after it. A server that lacks a counter leaves it out.
using ServerCounters = std::vector<std::pair<std::string, double>>;

// The place to add a counter of the server to. Never fails: a counter that cannot be read is left
// out.
ServerCounters ReadServerCounters(const Client& client);

// Of the names that both have, in the order of `after`.
ServerCounters DifferenceOf(const ServerCounters& before, const ServerCounters& after);

// What a step took, and how much of it everything but the model and the sampler: planning, blocks,
// results. Adds nothing when no step was made.
void AddStepRatios(ServerCounters& difference);

}  // namespace switchyard
