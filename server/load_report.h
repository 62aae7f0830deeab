#pragma once

#include "engine/engine.h"
#include "server/serving_state.h"
#include "switchyard/v1/inference.pb.h"

namespace switchyard {

// The answer to GetLoad.
v1::GetLoadResponse DescribeLoad(const EngineLoad& engine, ServingState& state);

}  // namespace switchyard
