#include "server/generate_once.h"

#include <utility>

#include "server/grpc_status.h"
#include "server/message_bytes.h"

namespace switchyard {

grpc::ServerUnaryReactor* GenerateOnce::Start(
    ServingState& state,
    const grpc::ServerContextBase& context,
    const grpc::ByteBuffer& request,
    grpc::ByteBuffer& response
) {
  const auto call = std::make_shared<GenerateOnce>(response);
  call->self_ = call;
  const Status status = call->Begin(state, context, request);
  if (status.ok()) {
    call->Deliver();
  } else {
    call->Finish(ToGrpcStatus(status));
  }
  return call.get();
}

Status GenerateOnce::Begin(
    ServingState& state, const grpc::ServerContextBase& context, const grpc::ByteBuffer& bytes
) {
  ASSIGN_OR_RETURN(
      std::unique_ptr<Generation> generation,
      Generation::Start(
          state,
          {.context = context,
           .request = bytes,
           .wake_when = WakeWhen::kFinished,
           .wake = DeliverThrough(state.pump(), weak_from_this())}
      )
  );
  const MutexLock lock(mutex_);
  generation_ = std::move(generation);
  return OkStatus();
}

void GenerateOnce::OnCancel() {
  const MutexLock lock(mutex_);
  if (generation_ != nullptr) {
    generation_->Cancel();
  }
}

void GenerateOnce::OnDone() {
  // May be the last owner: frees this on return.
  const std::shared_ptr<GenerateOnce> self = std::move(self_);
}

void GenerateOnce::Deliver() {
  Status status;
  {
    const MutexLock lock(mutex_);
    if (generation_ == nullptr) {
      return;
    }
    TokenStream::Taken taken = generation_->Take();
    Collect(taken.delta);
    if (!taken.finished) {
      return;
    }
    status = Answer(generation_->End(taken));
  }
  Finish(ToGrpcStatus(status));
}

void GenerateOnce::Collect(const v1::Delta& delta) {
  collected_.mutable_text()->append(delta.text());
  collected_.mutable_token_ids()->MergeFrom(delta.token_ids());
  collected_.mutable_logprobs()->MergeFrom(delta.logprobs());
}

Status GenerateOnce::Answer(GenerationEnd end) {
  RETURN_IF_ERROR(end.status);
  collected_.mutable_finished()->Swap(&end.finished);
  return SerializeMessage(collected_, response_);
}

}  // namespace switchyard
