#include "server/call/incoming_call.h"

#include <grpc/support/time.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "server/validation/field_violation.h"

namespace switchyard {
namespace {

constexpr char kTraceparent[] = "traceparent";
constexpr char kAuthorization[] = "authorization";

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

// What comes twice is as good as absent: nobody knows which is meant.
std::string MetadataOf(const grpc::ServerContextBase& context, const char* name) {
  const auto [begin, end] = context.client_metadata().equal_range(name);
  const bool is_one = begin != end && std::next(begin) == end;
  return is_one ? std::string(begin->second.data(), begin->second.size()) : "";
}

}  // namespace

IncomingCall::IncomingCall(
    ServingState& state, const char* method, grpc::CallbackServerContext& context
)
    : state_(state),
      is_remote_(true),
      deadline_(DeadlineOf(context)),
      authorization_(MetadataOf(context, kAuthorization)) {
  record_.method = method;
  record_.peer = context.peer();
  std::optional<TraceContext> trace = ContinueTrace(MetadataOf(context, kTraceparent));
  record_.trace = trace ? *std::move(trace) : BeginTrace();
  record_.arrived_at = std::chrono::system_clock::now();
  context.AddInitialMetadata(kTraceparent, Traceparent(record_.trace));
}

IncomingCall::~IncomingCall() {
  if (is_running_) {
    Finish({.status = Status(StatusCode::kCancelled, "the call ended early"), .reason = "abandoned"}
    );
  }
  if (!entered_as_.empty()) {
    state_.peer_streams().Leave(entered_as_);
  }
  if (!entered_from_.empty()) {
    state_.host_streams().Leave(entered_from_);
  }
}

Status IncomingCall::EnterHost() {
  std::string host = HostOfPeer(record_.peer);
  if (const Status status = state_.host_streams().Enter(host); !status.ok()) {
    return state_.Full(RefusalReason::kHostStreams, status);
  }
  entered_from_ = std::move(host);
  return OkStatus();
}

Status IncomingCall::Admit(Door door) {
  // An administrator gets through whatever the clients of the same host do.
  if (is_remote_ && door == Door::kPublic) {
    RETURN_IF_ERROR(EnterHost());
  }
  const AccessControl* const access = state_.options().access.get();
  if (access == nullptr || !is_remote_) {
    return OkStatus();
  }
  ASSIGN_OR_RETURN(account_, access->Authenticate(authorization_));
  record_.key_name = account_->key().name;
  if (door == Door::kAdmin && !account_->key().admin) {
    return Status(
        StatusCode::kPermissionDenied,
        Concat("API key \"", record_.key_name, "\" is not one with \"admin\": true")
    );
  }
  Status status = account_->TakeRequest();
  if (!status.ok()) {
    state_.counters().CountRefusal(RefusalReason::kKeyLimit);
  }
  return status;
}

Status IncomingCall::EnterGeneration() {
  if (!is_remote_) {
    return OkStatus();
  }
  std::string peer = account_ == nullptr ? HostOfPeer(record_.peer) : "key " + record_.key_name;
  if (const Status status = state_.peer_streams().Enter(peer); !status.ok()) {
    return state_.Full(RefusalReason::kPeerStreams, status);
  }
  entered_as_ = std::move(peer);
  return OkStatus();
}

Status IncomingCall::ApplyPriority(const v1::SchedulingOptions& asked, int32_t& priority) const {
  if (account_ == nullptr || !account_->key().priority) {
    return OkStatus();
  }
  const int32_t most = *account_->key().priority;
  if (!asked.has_priority()) {
    priority = most;
  }
  return priority <= most ? OkStatus()
                          : FieldViolation(
                                "scheduling.priority",
                                Concat(
                                    "is ",
                                    priority,
                                    "; API key \"",
                                    record_.key_name,
                                    "\" may ask for at most ",
                                    most
                                )
                            );
}

Status IncomingCall::TakeTokens(int64_t tokens) {
  if (account_ == nullptr) {
    return OkStatus();
  }
  Status status = account_->TakeTokens(tokens);
  if (status.ok()) {
    taken_tokens_ += tokens;
  } else {
    state_.counters().CountRefusal(RefusalReason::kKeyLimit);
  }
  return status;
}

void IncomingCall::ReturnTokens(int64_t tokens) {
  const int64_t returned = std::clamp<int64_t>(tokens, 0, taken_tokens_);
  if (returned > 0) {
    account_->ReturnTokens(returned);
    taken_tokens_ -= returned;
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
  ReturnTokens(taken_tokens_);
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

Status CheckAdminDoor(const char* method, Door door) {
  if (door == Door::kAdmin) {
    return OkStatus();
  }
  return Status(
      StatusCode::kPermissionDenied,
      Concat(
          method,
          " is for administrators, so it is not answered here: call it at the address that the "
          "server was started with as --admin-listen"
      )
  );
}

StatusOr<std::shared_ptr<IncomingCall>> AdmitCall(
    ServingState& state, const char* method, grpc::CallbackServerContext& context, Door door
) {
  auto call = std::make_shared<IncomingCall>(state, method, context);
  if (Status status = call->Admit(door); !status.ok()) {
    state.counters().CountRefusal(status.code());
    call->Refuse(status);
    return status;
  }
  return call;
}

}  // namespace switchyard
