#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace switchyard {

// Where a call stands in a distributed trace (W3C Trace Context, level 1). Ids are lower-case hex.
struct TraceContext {
  std::string trace_id;   // 32 digits, shared by all spans of a trace
  std::string span_id;    // 16 digits, this call's own
  std::string parent_id;  // 16 digits, the caller's span; empty when the trace begins here
  bool sampled = false;   // whether the caller records this trace
};

// The span that answers a call with this `traceparent` value: a child of the caller's span, in its
// trace. Absent for anything that the specification says to ignore: a version 00 of another shape,
// version ff, capitals, ids of zeros only. Of a later version, what version 00 knows is read.
std::optional<TraceContext> ContinueTrace(std::string_view traceparent);

// The first span of a trace of its own, which nobody asked to record.
TraceContext BeginTrace();

// This span as a `traceparent` value of version 00.
std::string Traceparent(const TraceContext& trace);

}  // namespace switchyard
