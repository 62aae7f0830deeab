#include "server/generate_stream.h"

#include <utility>

#include "server/grpc_status.h"
#include "server/message_bytes.h"

namespace switchyard {
namespace {

bool IsEmpty(const v1::Delta& delta) {
  return delta.token_ids().empty() && delta.text().empty();
}

}  // namespace

grpc::ServerWriteReactor<grpc::ByteBuffer>* GenerateStream::Start(
    ServingState& state, const grpc::ServerContextBase& context, const grpc::ByteBuffer& request
) {
  const auto stream = std::make_shared<GenerateStream>();
  stream->self_ = stream;
  const Status status = stream->Begin(state, context, request);
  if (status.ok()) {
    stream->Deliver();
  } else {
    stream->Finish(ToGrpcStatus(status));
  }
  return stream.get();
}

Status GenerateStream::Begin(
    ServingState& state, const grpc::ServerContextBase& context, const grpc::ByteBuffer& bytes
) {
  ASSIGN_OR_RETURN(
      std::unique_ptr<Generation> generation,
      Generation::Start(
          state,
          {.context = context,
           .request = bytes,
           .wake_when = WakeWhen::kAnythingCame,
           .wake = DeliverThrough(state.pump(), weak_from_this())}
      )
  );
  const MutexLock lock(mutex_);
  generation_ = std::move(generation);
  return OkStatus();
}

void GenerateStream::OnWriteDone(bool ok) {
  {
    const MutexLock lock(mutex_);
    writing_ = false;
    if (!ok) {
      broken_ = true;
      generation_->Cancel();
    }
  }
  Deliver();
}

void GenerateStream::OnCancel() {
  const MutexLock lock(mutex_);
  if (generation_ != nullptr) {
    generation_->Cancel();
  }
}

void GenerateStream::OnDone() {
  // May be the last owner: frees this on return.
  const std::shared_ptr<GenerateStream> self = std::move(self_);
}

void GenerateStream::Deliver() {
  Step step = Step::kNone;
  grpc::Status status;
  {
    const MutexLock lock(mutex_);
    step = NextStep();
    if (step == Step::kFinish) {
      status = ToGrpcStatus(end_->status);
    }
  }
  switch (step) {
    case Step::kNone:
      return;
    case Step::kWrite:
      StartWrite(&outgoing_);
      return;
    case Step::kWriteAndFinish:
      StartWriteAndFinish(&outgoing_, grpc::WriteOptions(), grpc::Status::OK);
      return;
    case Step::kFinish:
      Finish(status);
      return;
  }
}

GenerateStream::Step GenerateStream::NextStep() {
  if (generation_ == nullptr || writing_ || ended_) {
    return Step::kNone;
  }
  TokenStream::Taken taken = generation_->Take();
  if (taken.finished) {
    end_ = generation_->End(taken);
  }
  if (broken_ || IsEmpty(taken.delta)) {
    return end_ ? EndStep() : Step::kNone;
  }
  v1::GenerateResponse response;
  response.mutable_delta()->Swap(&taken.delta);
  const Status written = SerializeMessage(response, outgoing_);
  if (!written.ok()) {
    return Fail(written);
  }
  writing_ = true;
  return Step::kWrite;
}

GenerateStream::Step GenerateStream::EndStep() {
  ended_ = true;
  if (!end_->status.ok()) {
    return Step::kFinish;
  }
  v1::GenerateResponse response;
  response.mutable_finished()->Swap(&end_->finished);
  const Status written = SerializeMessage(response, outgoing_);
  return written.ok() ? Step::kWriteAndFinish : Fail(written);
}

GenerateStream::Step GenerateStream::Fail(const Status& status) {
  generation_->Cancel();
  end_ = GenerationEnd{.status = status, .finished = {}};
  ended_ = true;
  return Step::kFinish;
}

}  // namespace switchyard
