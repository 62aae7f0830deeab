#pragma once

#include "base/status.h"
#include "engine/expert_statistics.h"
#include "server/experts/expert_baseline.h"
#include "switchyard/v1/experts.pb.h"

namespace switchyard {

// Pure: the routers, kinds and phases of `statistics` that `request` asks for, with the figures
// that follow from their counts. Every door (gRPC, HTTP, Prometheus) shows what this gives.
// `baseline`, which drift is measured from, may be null; it is of the same routers.
// INVALID_ARGUMENT (a FieldViolation) for one that does not exist.
StatusOr<v1::GetExpertStatsResponse> SelectExpertStats(
    const ExpertStatistics& statistics,
    const v1::GetExpertStatsRequest& request,
    const ExpertBaseline* baseline = nullptr
);

}  // namespace switchyard
