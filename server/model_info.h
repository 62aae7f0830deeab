#pragma once

#include "server/loaded_model.h"
#include "switchyard/v1/inference.pb.h"

namespace switchyard {

// The answer to GetModelInfo. Requires: everything else of `loaded` is filled in.
v1::GetModelInfoResponse DescribeModel(const LoadedModel& loaded);

}  // namespace switchyard
