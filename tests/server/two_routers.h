#pragma once

#include "engine/expert_statistics.h"

namespace switchyard {

// Layer 0: one MoA router, 2 experts, top 1. Layer 1: a value router of 2 heads with 2 experts
// each, top 1. Phases in the order prefill, decode, recompute, warm-up.
ExpertStatistics TwoRouters();

}  // namespace switchyard
