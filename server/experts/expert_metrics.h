#pragma once

#include <chrono>
#include <cstdint>

#include "base/status.h"
#include "server/loaded_model.h"
#include "server/metrics/metric_families.h"
#include "server/serving_state.h"

namespace switchyard {

// A scrape gives up on an engine in a long step, and takes a copy that another scrape just got.
inline constexpr std::chrono::milliseconds kScrapeTimeout{1000};
inline constexpr std::chrono::milliseconds kScrapeMaxAge{200};

// How many series this level has of the model's routers, at most: figures of windows without work
// are left out.
int64_t CountExpertSeries(const v1::GetModelInfoResponse& info, ExpertMetricsLevel level);

// FAILED_PRECONDITION, with both numbers, when they are more than `options` allow.
Status CheckExpertSeries(const v1::GetModelInfoResponse& info, const ExpertMetricsOptions& options);

// DEADLINE_EXCEEDED when the engine does not answer: nothing was added then, because a count that
// is not known is not 0.
Status AddExpertMetrics(LoadedModel& model, ServingState& state, MetricFamilies& families);

}  // namespace switchyard
