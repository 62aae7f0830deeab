#pragma once

#include "base/status.h"
#include "engine/expert_statistics.h"
#include "switchyard/v1/experts.pb.h"

namespace switchyard {

// Pure: the routers, kinds and phases of `statistics` that `request` asks for, with the figures
// that follow from their counts. Every door (gRPC, HTTP, Prometheus) shows what this gives.
// INVALID_ARGUMENT (a FieldViolation) for one that does not exist.
StatusOr<v1::GetExpertStatsResponse> SelectExpertStats(
    const ExpertStatistics& statistics, const v1::GetExpertStatsRequest& request
);

}  // namespace switchyard
