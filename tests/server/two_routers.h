#pragma once

#include "engine/expert_statistics.h"
#include "switchyard/v1/inference.pb.h"

namespace switchyard {

// Layer 0: one MoA router, 2 experts, top 1. Layer 1: a value router of 2 heads with 2 experts
// each, top 1. Phases in the order prefill, decode, recompute, warm-up.
ExpertStatistics TwoRouters();

// A model with these routers, and nothing else told of it.
v1::GetModelInfoResponse TwoRoutersInfo();

}  // namespace switchyard
