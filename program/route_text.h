#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "base/status.h"
#include "engine/model/model.h"
#include "engine/specialisation.h"

namespace switchyard {

// Told how many tokens have been routed.
using RoutingProgress = std::function<void(int64_t tokens)>;

// Runs `tokens` through the model in sequences as long as its context, each of which begins with
// `bos_id` if given; that token is not counted. INVALID_ARGUMENT for no tokens, or one outside the
// vocabulary.
StatusOr<TextRouting> RouteText(
    const Model& model,
    std::span<const int32_t> tokens,
    std::optional<int32_t> bos_id,
    const RoutingProgress& progress
);

}  // namespace switchyard
