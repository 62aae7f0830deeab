#pragma once

#include <functional>

#include "base/status.h"
#include "server/generation/token_stream.h"
#include "server/serving_state.h"
#include "switchyard/v1/inference.pb.h"

namespace switchyard {

// Runs one request through the engine of `state` in this process: what the Generate RPC does,
// without the RPC. Calls `on_part` for each piece, in order, from the calling thread. Requires:
// `state` has its model.
StatusOr<v1::Finished> GenerateLocally(
    ServingState& state,
    const v1::GenerateRequest& request,
    const std::function<void(const TokenStream::Part& part)>& on_part
);

}  // namespace switchyard
