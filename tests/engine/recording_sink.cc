#include "tests/engine/recording_sink.h"

namespace switchyard {

Verdict RecordingSink::OnToken(const TokenEvent& event) {
  tokens.push_back(event.id);
  logprobs.push_back(event.logprob);
  tops.emplace_back(event.top.begin(), event.top.end());
  stop_tokens.push_back(event.is_stop_token);
  return on_token ? on_token(event) : Verdict::kContinue;
}

void RecordingSink::OnFinished(const FinishEvent& event) {
  finished = event;
  ++finished_calls;
  if (on_finished) {
    on_finished();
  }
  const MutexLock lock(mutex_);
  is_finished_ = true;
  changed_.NotifyAll();
}

void RecordingSink::WaitUntilFinished() {
  const MutexLock lock(mutex_);
  while (!is_finished_) {
    changed_.Wait(mutex_);
  }
}

}  // namespace switchyard
