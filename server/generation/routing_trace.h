#pragma once

#include <google/protobuf/repeated_field.h>

#include "engine/token_sink.h"
#include "switchyard/v1/inference.pb.h"

namespace switchyard {

using RoutingTraces = google::protobuf::RepeatedPtrField<v1::RoutingTrace>;

v1::RoutingTrace DescribeRouting(const RoutingEvent& event);

// Puts `trace` behind `traces`, which are of the same completion; joined with the last of them when
// it goes on where that ends, so that many small runs do not name every router again.
void AppendTrace(v1::RoutingTrace trace, RoutingTraces& traces);

}  // namespace switchyard
