#include "server/generation/generate_stream.h"

#include <utility>

#include "server/generation/message_bytes.h"

namespace switchyard {
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
  if (broken_) {
    events_.clear();  // else the end would wait behind them for ever
  }
  if (events_.empty()) {
    Collect(generation_->Take());
  }
  if (broken_ || events_.empty()) {
    return end_ ? EndStep() : Step::kNone;
  }
  const v1::GenerateResponse response = std::move(events_.front());
  events_.pop_front();
  return Write(response);
}

void GenerateStream::Collect(TokenStream::Taken taken) {
  for (TokenStream::Part& part : taken.parts) {
    if (!part.prompt.tokens().empty()) {
      events_.emplace_back().mutable_prompt_logprobs()->Swap(&part.prompt);
    }
    for (v1::RoutingTrace& trace : part.routing) {
      events_.emplace_back().mutable_routing()->Swap(&trace);
    }
    if (!part.delta.token_ids().empty() || !part.delta.text().empty()) {
      events_.emplace_back().mutable_delta()->Swap(&part.delta);
    }
  }
  if (!taken.ends.empty()) {
    end_ = generation_->End(taken);
  }
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
