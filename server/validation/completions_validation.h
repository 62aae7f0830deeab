#pragma once

#include "base/status.h"
#include "server/loaded_model.h"
#include "server/validation/request_validation.h"
#include "switchyard/v1/inference.pb.h"

namespace switchyard {

// n, best_of and beam_search, into `valid`, which has everything else already. INVALID_ARGUMENT (a
// FieldViolation) for a number out of range, or a combination that means nothing.
Status ReadCompletions(
    const v1::GenerateRequest& request, const LoadedModel& model, ValidatedRequest& valid
);

}  // namespace switchyard
