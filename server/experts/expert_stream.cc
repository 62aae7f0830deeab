#include "server/experts/expert_stream.h"

#include <exception>
#include <utility>

#include "server/call/grpc_status.h"
#include "server/generation/message_bytes.h"
#include "server/validation/field_violation.h"

namespace switchyard {
namespace {

constexpr int32_t kMaxOpenStreams = 64;
constexpr int32_t kMinIntervalMs = 100;
constexpr int32_t kMaxIntervalMs = 60'000;
constexpr int32_t kDefaultIntervalMs = 1000;

}  // namespace

void ExpertStream::Begin(
    const grpc::ByteBuffer& request, StatusOr<std::shared_ptr<IncomingCall>> admitted
) {
  self_ = shared_from_this();
  const Status status = admitted.ok() ? Parse(request) : admitted.status();
  if (!status.ok()) {
    Finish(ToGrpcStatus(status));
    return;
  }
  admitted_ = *std::move(admitted);
  PostAnswer();
}

Status ExpertStream::Parse(const grpc::ByteBuffer& request) {
  if (open_streams_ > kMaxOpenStreams) {
    return ResourceExhausted(
        kMaxOpenStreams, " streams of expert statistics are open, the most there may be; try later"
    );
  }
  v1::StreamExpertStatsRequest parsed;
  RETURN_IF_ERROR(ParseMessage(request, parsed));
  const int32_t interval_ms = parsed.interval_ms() == 0 ? kDefaultIntervalMs : parsed.interval_ms();
  if (interval_ms < kMinIntervalMs || interval_ms > kMaxIntervalMs) {
    return FieldViolation(
        "interval_ms",
        Concat("is ", interval_ms, "; it must be in [", kMinIntervalMs, ", ", kMaxIntervalMs, "]")
    );
  }
  interval_ = std::chrono::milliseconds(interval_ms);
  asked_ = std::move(*parsed.mutable_stats());
  return OkStatus();
}

void ExpertStream::PostAnswer() {
  state_.inquiries().Post([self = shared_from_this()] { self->WriteAnswer(); });
}

void ExpertStream::WriteAnswer() {
  Status status;
  try {
    status = Answer();
  } catch (const std::exception& error) {
    status = Internal("answering with expert statistics failed: ", error.what());
  }
  if (status.ok()) {
    StartWrite(&outgoing_);
  } else {
    Finish(ToGrpcStatus(status));
  }
}

Status ExpertStream::Answer() {
  {
    const MutexLock lock(mutex_);
    if (cancelled_) {
      return Status(StatusCode::kCancelled, "the client cancelled");
    }
  }
  RETURN_IF_ERROR(state_.CheckNotDraining());
  ASSIGN_OR_RETURN(const LoadedModel* model, state_.Model(asked_.model()));
  ASSIGN_OR_RETURN(
      const ExpertSnapshot latest, state_.experts().Snapshot(*model->engine, ExpertFreshness())
  );
  ASSIGN_OR_RETURN(v1::GetExpertStatsResponse response, state_.experts().Answer(*latest, asked_));
  response.set_model(model->name);
  return SerializeMessage(response, outgoing_);
}

void ExpertStream::OnWriteDone(bool ok) {
  const MutexLock lock(mutex_);
  if (!ok || cancelled_) {
    PostAnswer();  // which ends the RPC, off gRPC's thread and without the lock
    cancelled_ = true;
    return;
  }
  // A new one: the callback of the one before may still be on its way out of it.
  alarm_ = std::make_unique<grpc::Alarm>();
  alarm_->Set(std::chrono::system_clock::now() + interval_, [self = shared_from_this()](bool) {
    self->PostAnswer();
  });
}

void ExpertStream::OnCancel() {
  const MutexLock lock(mutex_);
  cancelled_ = true;
  if (alarm_ != nullptr) {
    alarm_->Cancel();
  }
}

void ExpertStream::OnDone() {
  // May be the last owner: frees this on return.
  const std::shared_ptr<ExpertStream> self = std::move(self_);
  // An alarm keeps its callback, which owns this, for as long as it is there itself.
  std::unique_ptr<grpc::Alarm> last_alarm;
  const MutexLock lock(mutex_);
  last_alarm = std::move(alarm_);
}

}  // namespace switchyard
