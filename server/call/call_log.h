#pragma once

#include <functional>

#include "server/call/call_record.h"
#include "server/call/log_limiter.h"

namespace switchyard {

// A line for each generation that is accepted, finished or refused. Refusals beyond a hundred a
// second are counted instead, because a client makes as many as it likes.
class CallLog final : public CallObserver {
 public:
  explicit CallLog(std::function<Clock::time_point()> now) : now_(std::move(now)) {}

  void OnAccepted(const CallRecord& call) override;
  void OnFinished(const CallRecord& call, const CallEnd& end) override;
  void OnRefused(const CallRecord& call, const Status& status) override;

 private:
  const std::function<Clock::time_point()> now_;
  LogLimiter refusals_{100};
};

}  // namespace switchyard
