#include "server/call/trace_context.h"

#include <openssl/rand.h>

#include <algorithm>
#include <array>
#include <cstdint>

namespace switchyard {
namespace {

constexpr size_t kTraceIdBytes = 16;
constexpr size_t kSpanIdBytes = 8;
// 00-TRACE-PARENT-FLAGS
constexpr size_t kTraceAt = 3;
constexpr size_t kParentAt = 36;
constexpr size_t kFlagsAt = 53;
constexpr size_t kLength = 55;
constexpr int kSampledFlag = 1;

bool IsHex(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char letter) {
    return (letter >= '0' && letter <= '9') || (letter >= 'a' && letter <= 'f');
  });
}

bool IsId(std::string_view text) {
  return IsHex(text) && text.find_first_not_of('0') != std::string_view::npos;
}

int HexDigit(char letter) {
  return letter <= '9' ? letter - '0' : letter - 'a' + 10;
}

template <size_t kBytes>
std::string RandomId() {
  std::array<uint8_t, kBytes> bytes = {};
  // Without entropy the id is still none of zeros only, which would make it invalid.
  if (RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) != 1) {
    bytes[0] = 1;
  }
  std::string id;
  for (const uint8_t byte : bytes) {
    id += "0123456789abcdef"[byte >> 4];
    id += "0123456789abcdef"[byte & 15];
  }
  return id;
}

}  // namespace

std::optional<TraceContext> ContinueTrace(std::string_view traceparent) {
  if (traceparent.size() < kLength) {
    return std::nullopt;
  }
  const std::string_view version = traceparent.substr(0, 2);
  const std::string_view trace_id = traceparent.substr(kTraceAt, 2 * kTraceIdBytes);
  const std::string_view parent_id = traceparent.substr(kParentAt, 2 * kSpanIdBytes);
  const std::string_view flags = traceparent.substr(kFlagsAt, 2);
  const bool has_dashes = traceparent[kTraceAt - 1] == '-' && traceparent[kParentAt - 1] == '-' &&
                          traceparent[kFlagsAt - 1] == '-';
  const bool has_good_end =
      traceparent.size() == kLength || (version != "00" && traceparent[kLength] == '-');
  if (!has_dashes || !has_good_end || !IsHex(version) || version == "ff" || !IsId(trace_id) ||
      !IsId(parent_id) || !IsHex(flags)) {
    return std::nullopt;
  }
  return TraceContext{
      .trace_id = std::string(trace_id),
      .span_id = RandomId<kSpanIdBytes>(),
      .parent_id = std::string(parent_id),
      .sampled = (HexDigit(flags[1]) & kSampledFlag) != 0};
}

TraceContext BeginTrace() {
  return {
      .trace_id = RandomId<kTraceIdBytes>(),
      .span_id = RandomId<kSpanIdBytes>(),
      .parent_id = "",
      .sampled = false};
}

std::string Traceparent(const TraceContext& trace) {
  return "00-" + trace.trace_id + "-" + trace.span_id + (trace.sampled ? "-01" : "-00");
}

}  // namespace switchyard
