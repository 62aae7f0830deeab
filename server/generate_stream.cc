#include "server/generate_stream.h"

#include <utility>

#include "server/message_bytes.h"

namespace switchyard {
namespace {

bool IsEmpty(const v1::Delta& delta) {
  return delta.token_ids().empty() && delta.text().empty();
}

}  // namespace

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

void GenerateStream::OnTick(Clock::time_point now) {
  {
    const MutexLock lock(mutex_);
    if (!CheckStall(now)) {
      return;
    }
    resetting_ = true;
  }
  context_.TryCancel();
  {
    const MutexLock lock(mutex_);
    resetting_ = false;
  }
  Deliver();
}

bool GenerateStream::CheckStall(Clock::time_point now) {
  const std::chrono::milliseconds timeout = state_.options().stall_timeout;
  if (!writing_ || was_reset_ || now - write_began_ < timeout) {
    return false;
  }
  if (stalled_) {
    was_reset_ = now - write_began_ >= 2 * timeout;
    return was_reset_;
  }
  stalled_ = true;
  GenerationEnd end = generation_->EndStalled(timeout);
  // Behind a `finished` event nothing may come but OK.
  if (!last_written_) {
    end_ = std::move(end);
  }
  return false;
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
    case Step::kFinish:
      Finish(status);
      return;
  }
}

GenerateStream::Step GenerateStream::NextStep() {
  if (generation_ == nullptr || writing_ || resetting_ || ended_) {
    return Step::kNone;
  }
  if (stalled_ || last_written_) {
    return EndStep();
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
  return Write(response);
}

GenerateStream::Step GenerateStream::Write(const v1::GenerateResponse& response) {
  const Status written = SerializeMessage(response, outgoing_);
  if (!written.ok()) {
    return Fail(written);
  }
  writing_ = true;
  write_began_ = state_.options().now();
  return Step::kWrite;
}

// Not WriteAndFinish: a client that never reads the last event would keep the RPC for ever, because
// what has been told to finish cannot be reset any more.
GenerateStream::Step GenerateStream::EndStep() {
  if (end_->status.ok() && !last_written_ && !broken_) {
    last_written_ = true;
    v1::GenerateResponse response;
    response.mutable_finished()->Swap(&end_->finished);
    return Write(response);
  }
  ended_ = true;
  return Step::kFinish;
}

GenerateStream::Step GenerateStream::Fail(const Status& status) {
  generation_->Cancel();
  end_ = GenerationEnd{.status = status, .finished = {}};
  ended_ = true;
  return Step::kFinish;
}

}  // namespace switchyard
