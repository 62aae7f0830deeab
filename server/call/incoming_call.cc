#include "server/call/incoming_call.h"

#include <grpc/support/time.h>

#include <string_view>
#include <utility>

namespace switchyard {
namespace {

constexpr char kTraceparent[] = "traceparent";

std::optional<Clock::time_point> DeadlineOf(const grpc::ServerContextBase& context) {
  // Counted from now in gRPC's own arithmetic, which saturates: a client may ask for a thousand
  // years.
  constexpr int64_t kLongestSeconds = 10LL * 365 * 24 * 3600;
  const gpr_timespec deadline = context.raw_deadline();
  const gpr_timespec left = gpr_time_sub(deadline, gpr_now(deadline.clock_type));
  if (left.tv_sec > kLongestSeconds) {
    return std::nullopt;
  }
  return Clock::now() + std::chrono::seconds(left.tv_sec) + std::chrono::nanoseconds(left.tv_nsec);
}

// A trace that comes twice is none: nobody knows which is meant.
TraceContext TraceOf(const grpc::ServerContextBase& context) {
  const auto [begin, end] = context.client_metadata().equal_range(kTraceparent);
  if (begin != end && std::next(begin) == end) {
    const std::string_view value(begin->second.data(), begin->second.size());
    if (std::optional<TraceContext> trace = ContinueTrace(value)) {
      return *std::move(trace);
    }
  }
  return BeginTrace();
}

}  // namespace

IncomingCall::IncomingCall(
    ServingState& state, const char* method, grpc::CallbackServerContext& context
)
    : state_(state), is_remote_(true), deadline_(DeadlineOf(context)) {
  record_.method = method;
  record_.peer = context.peer();
  record_.trace = TraceOf(context);
  record_.arrived_at = std::chrono::system_clock::now();
  context.AddInitialMetadata(kTraceparent, Traceparent(record_.trace));
}

IncomingCall::~IncomingCall() {
  if (is_running_) {
    Finish({.status = Status(StatusCode::kCancelled, "the call ended early"), .reason = "abandoned"}
    );
  }
}

void IncomingCall::Accept() {
  is_running_ = true;
  for (CallObserver* observer : state_.call_observers()) {
    if (is_remote_) {
      observer->OnAccepted(record_);
    }
  }
}

void IncomingCall::Refuse(const Status& status) {
  for (CallObserver* observer : state_.call_observers()) {
    if (is_remote_) {
      observer->OnRefused(record_, status);
    }
  }
}

void IncomingCall::Finish(const CallEnd& end) {
  if (!std::exchange(is_running_, false)) {
    return;
  }
  for (CallObserver* observer : state_.call_observers()) {
    if (is_remote_) {
      observer->OnFinished(record_, end);
    }
  }
}

}  // namespace switchyard
