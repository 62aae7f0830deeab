#pragma once

#include <cstdint>
#include <string>

#include "switchyard/v1/experts.pb.h"

namespace switchyard {

enum class HeatMapStyle : uint8_t { kPlain, kColor };

// Experts against layers (and heads), one map for each kind of router: a cell is the expert's
// utilization, 1.00 a fair share. kColor adds the background of a terminal of 256 colors, blue
// below the fair share and red above it.
std::string ExpertHeatMap(const v1::GetExpertStatsResponse& stats, HeatMapStyle style);

}  // namespace switchyard
