#pragma once

#include <map>
#include <string>

#include "base/status.h"
#include "switchyard/v1/experts.pb.h"

namespace switchyard {

using QueryParameters = std::multimap<std::string, std::string>;

// The request that a query of /v1/experts spells: window (life, 10s, 1m, 10m, reset), and, each as
// often as wanted, layer, kind and phase (prefill, decode, recompute, warm_up). `format` is not
// its business. INVALID_ARGUMENT for anything else.
StatusOr<v1::GetExpertStatsRequest> ParseExpertQuery(const QueryParameters& parameters);

// One line for each expert, after a line of names. Margin and drift are those of the expert's
// router (its head's).
std::string ExpertCsv(const v1::GetExpertStatsResponse& response);

}  // namespace switchyard
