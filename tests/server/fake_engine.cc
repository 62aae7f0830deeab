#include "tests/server/fake_engine.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "base/check.h"
#include "tests/server/fake_tokenizer.h"

namespace switchyard {
namespace {

FinishEvent Ended(FinishReason reason) {
  FinishEvent event;
  event.reason = reason;
  return event;
}

}  // namespace

FakeEngine::FakeEngine(std::vector<int32_t> script)
    : script_(std::move(script)), thread_([this] { Run(); }) {}

FakeEngine::~FakeEngine() {
  Stop(Clock::now());
  thread_.join();
}

void FakeEngine::HoldAfter(int32_t tokens) {
  const MutexLock lock(mutex_);
  hold_after_ = tokens;
  changed_.NotifyAll();
}

void FakeEngine::Release() {
  HoldAfter(INT32_MAX);
}

void FakeEngine::FailAfter(int32_t tokens, const Status& status) {
  const MutexLock lock(mutex_);
  fail_after_ = tokens;
  failure_ = status;
}

void FakeEngine::RefuseWith(const Status& status) {
  const MutexLock lock(mutex_);
  refusal_ = status;
}

void FakeEngine::SetStatistics(const ExpertStatistics& statistics) {
  const MutexLock lock(mutex_);
  statistics_ = statistics;
}

void FakeEngine::WaitUntilIdle() {
  const MutexLock lock(mutex_);
  while (!running_.empty()) {
    changed_.Wait(mutex_);
  }
}

void FakeEngine::WaitUntilSubmitted(int count) {
  const MutexLock lock(mutex_);
  while (submitted_ < count) {
    changed_.Wait(mutex_);
  }
}

GenerationRequest FakeEngine::LastRequest() const {
  const MutexLock lock(mutex_);
  return last_request_;
}

StatusOr<RequestId> FakeEngine::Submit(GenerationRequest request) {
  const MutexLock lock(mutex_);
  RETURN_IF_ERROR(refusal_);
  if (stopping_) {
    return Unavailable("stopped");
  }
  last_request_ = request;
  last_request_.sink = nullptr;
  const auto id = static_cast<RequestId>(++submitted_);
  const auto continuations = static_cast<int32_t>(request.continuations.size());
  const int32_t completions = std::max(continuations, request.completions);
  for (int32_t completion = 0; completion < completions; ++completion) {
    Running& running = running_[{id, completion}];
    running.request = request;
    running.completion = completion;
    if (continuations > 0) {
      running.to_score = request.continuations[static_cast<size_t>(completion)];
    } else if (request.scoring.has_value() && completion == 0) {
      running.to_score.assign(request.prompt.begin() + 1, request.prompt.end());
    }
  }
  changed_.NotifyAll();
  return id;
}

void FakeEngine::Cancel(RequestId id) {
  const MutexLock lock(mutex_);
  for (auto& [key, running] : running_) {
    running.cancelled = running.cancelled || key.first == id;
  }
  changed_.NotifyAll();
}

void FakeEngine::Stop(Clock::time_point deadline) {
  const MutexLock lock(mutex_);
  while (!running_.empty() && Clock::now() < deadline) {
    changed_.WaitUntil(mutex_, deadline);
  }
  stopping_ = true;
  changed_.NotifyAll();
}

StatusOr<ExpertStatistics> FakeEngine::SnapshotExpertStatistics(
    std::chrono::milliseconds /*timeout*/
) {
  const MutexLock lock(mutex_);
  return statistics_;
}

EngineLoad FakeEngine::Load() const {
  const MutexLock lock(mutex_);
  EngineLoad load;
  load.running_requests = static_cast<int32_t>(running_.size());
  load.heartbeats = heartbeats_;
  return load;
}

const Model& FakeEngine::model() const {
  CHECK(false) << "a fake engine has no model";
  std::abort();
}

void FakeEngine::Run() {
  const MutexLock lock(mutex_);
  while (!stopping_ || !running_.empty()) {
    if (Step()) {
      ++heartbeats_;
    } else {
      changed_.WaitUntil(mutex_, NextDeadline());
    }
  }
}

bool FakeEngine::Step() {
  bool moved = false;
  for (auto next = running_.begin(); next != running_.end();) {
    const auto current = next++;
    std::optional<FinishEvent> finish = EndBeforeToken(current->second);
    if (!finish && current->second.completion_tokens < hold_after_) {
      finish = NextToken(current->second);
      moved = true;
    }
    if (finish) {
      moved = true;
      finish->completion = current->second.completion;
      finish->prompt_tokens = static_cast<int32_t>(current->second.request.prompt.size());
      finish->completion_tokens = current->second.completion_tokens;
      current->second.request.sink->OnFinished(*finish);
      running_.erase(current);
      changed_.NotifyAll();
    }
  }
  return moved;
}

std::optional<FinishEvent> FakeEngine::EndBeforeToken(const Running& running) const {
  if (running.cancelled || stopping_) {
    return Ended(FinishReason::kCancelled);
  }
  if (running.request.deadline && Clock::now() >= *running.request.deadline) {
    return Ended(FinishReason::kDeadline);
  }
  if (running.completion_tokens >= fail_after_) {
    FinishEvent event = Ended(FinishReason::kError);
    event.status = failure_;
    return event;
  }
  return std::nullopt;
}

void FakeEngine::Score(Running& running) {
  if (!running.request.scoring.has_value()) {
    running.to_score.clear();
  }
  for (const int32_t id : running.to_score) {
    const std::vector<TokenLogprobValue> top(
        static_cast<size_t>(running.request.scoring->top_logprobs), {.id = id, .logprob = -0.5F}
    );
    running.request.sink->OnPromptToken(
        {.completion = running.completion, .id = id, .logprob = -0.5F, .top = top}
    );
  }
  running.to_score.clear();
}

std::optional<FinishEvent> FakeEngine::NextToken(Running& running) {
  Score(running);
  if (!running.request.continuations.empty()) {
    return Ended(FinishReason::kScored);
  }
  const auto place = static_cast<size_t>(running.completion_tokens) % script_.size();
  const StoppingParameters& stopping = running.request.stopping;
  ++running.completion_tokens;
  TokenEvent event;
  event.id = script_[place];
  event.completion = running.completion;
  event.logprob = -0.5F / static_cast<float>(1 + running.completion);
  event.completion_tokens = running.completion_tokens;
  const bool is_eos = event.id == FakeTokenizer::kEos && !stopping.ignore_eos;
  event.is_stop_token =
      is_eos ||
      std::count(stopping.stop_token_ids.begin(), stopping.stop_token_ids.end(), event.id) > 0;
  const std::vector<TokenLogprobValue> top(
      static_cast<size_t>(running.request.sampling.top_logprobs.value_or(0)),
      {.id = event.id, .logprob = -0.5F}
  );
  event.top = top;
  const Verdict verdict = running.request.sink->OnToken(event);
  if (event.is_stop_token) {
    FinishEvent finish = Ended(FinishReason::kStop);
    finish.stop_token_id = event.id;
    finish.stop_is_eos = is_eos;
    return finish;
  }
  if (verdict == Verdict::kStop) {
    return Ended(FinishReason::kStop);
  }
  if (running.completion_tokens == stopping.max_tokens) {
    return Ended(FinishReason::kLength);
  }
  return std::nullopt;
}

Clock::time_point FakeEngine::NextDeadline() const {
  Clock::time_point next = Clock::now() + std::chrono::hours(1);
  for (const auto& [key, running] : running_) {
    next = std::min(next, running.request.deadline.value_or(next));
  }
  return next;
}

}  // namespace switchyard
