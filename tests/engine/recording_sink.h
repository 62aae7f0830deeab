#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "base/mutex.h"
#include "engine/token_sink.h"

namespace switchyard {

// Keeps what a request's sink hears. Its fields may be read by the thread that drives the engine,
// or by any thread after WaitUntilFinished.
class RecordingSink final : public TokenSink {
 public:
  Verdict OnToken(const TokenEvent& event) override;
  void OnFinished(const FinishEvent& event) override;

  void WaitUntilFinished();

  std::vector<int32_t> tokens;
  std::vector<float> logprobs;
  std::vector<std::vector<TokenLogprobValue>> tops;
  std::vector<bool> stop_tokens;
  std::optional<FinishEvent> finished;
  int32_t finished_calls = 0;

  std::function<Verdict(const TokenEvent&)> on_token;  // absent: go on
  std::function<void()> on_finished;

 private:
  Mutex mutex_;
  ConditionVariable changed_;
  bool is_finished_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace switchyard
