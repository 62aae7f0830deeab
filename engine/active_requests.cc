#include "engine/active_requests.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/log.h"

namespace switchyard {
namespace {

bool IsPast(const std::optional<Clock::time_point>& deadline, Clock::time_point now) {
  return deadline.has_value() && *deadline <= now;
}

}  // namespace

ActiveRequests::ActiveRequests(int32_t total_blocks, int32_t max_running)
    : max_running_(static_cast<size_t>(max_running)), pool_(total_blocks) {
  running_.reserve(max_running_);
  PublishLoad();
}

void ActiveRequests::Add(std::unique_ptr<Sequence> sequence) {
  waiting_.push_back(std::move(sequence));
  PublishLoad();
}

void ActiveRequests::Cancel(RequestId id, Clock::time_point now) {
  const auto cancel = [this, id, now](const std::unique_ptr<Sequence>& sequence) {
    if (sequence->id == id) {
      FinishWith(*sequence, FinishReason::kCancelled, now);
    }
  };
  std::ranges::for_each(waiting_, cancel);
  std::ranges::for_each(running_, cancel);
  RemoveFinished();
}

void ActiveRequests::CancelAll(Clock::time_point now) {
  const auto cancel = [this, now](const std::unique_ptr<Sequence>& sequence) {
    FinishWith(*sequence, FinishReason::kCancelled, now);
  };
  std::ranges::for_each(running_, cancel);
  std::ranges::for_each(waiting_, cancel);
  RemoveFinished();
}

void ActiveRequests::ExpireDeadlines(Clock::time_point now) {
  const auto expire = [this, now](const std::unique_ptr<Sequence>& sequence) {
    if (IsPast(sequence->request.deadline, now)) {
      FinishWith(*sequence, FinishReason::kDeadline, now);
    }
  };
  std::ranges::for_each(waiting_, expire);
  std::ranges::for_each(running_, expire);
  RemoveFinished();
}

void ActiveRequests::Finish(Sequence& sequence, const FinishEvent& event) {
  for (const BlockId block : sequence.blocks) {
    pool_.Release(block);
  }
  sequence.blocks.clear();
  ++(sequence.state == SequenceState::kRunning ? finished_running_ : finished_waiting_);
  sequence.state = SequenceState::kFinished;
  PublishLoad();
  LogDebug(
      "event=finished request_id={} reason={} prompt_tokens={} completion_tokens={}",
      static_cast<uint64_t>(sequence.id),
      static_cast<int>(event.reason),
      event.prompt_tokens,
      event.completion_tokens
  );
  const std::shared_ptr<TokenSink> sink = std::move(sequence.request.sink);
  sink->OnFinished(event);
}

void ActiveRequests::FinishWith(Sequence& sequence, FinishReason reason, Clock::time_point now) {
  FinishEvent event = sequence.Finish(now);
  event.reason = reason;
  Finish(sequence, event);
}

void ActiveRequests::RemoveFinished() {
  const auto is_finished = [](const std::unique_ptr<Sequence>& sequence) {
    return sequence->state == SequenceState::kFinished;
  };
  if (finished_waiting_ > 0) {
    std::erase_if(waiting_, is_finished);
    finished_waiting_ = 0;
  }
  if (finished_running_ > 0) {
    std::erase_if(running_, is_finished);
    finished_running_ = 0;
  }
}

void ActiveRequests::Describe(SchedulerState& state) const {
  state.waiting.clear();
  state.running.clear();
  state.available_blocks = pool_.AvailableBlocks();
  // No step admits more than may run at once.
  const size_t visible = std::min(waiting_.size(), max_running_);
  for (size_t i = 0; i < visible; ++i) {
    state.waiting.push_back(waiting_[i]->Scheduled());
  }
  for (const auto& sequence : running_) {
    state.running.push_back(sequence->Scheduled());
  }
}

void ActiveRequests::Apply(
    const StepPlan& plan, Clock::time_point now, std::vector<SequenceSlice>& slices
) {
  Admit(plan.admitted, now);
  slices.clear();
  auto sequence = running_.begin();
  for (const PlannedSlice& planned : plan.slices) {
    // Slices come in running order, so one walk finds them all.
    sequence = std::find_if(sequence, running_.end(), [&planned](const auto& candidate) {
      return candidate->id == planned.id;
    });
    CHECK(sequence != running_.end()) << plan.ToString();
    for (int32_t i = 0; i < planned.new_blocks; ++i) {
      (*sequence)->blocks.push_back(pool_.Allocate());
    }
    slices.push_back({.sequence = sequence->get(), .planned = planned});
  }
  PublishLoad();
}

void ActiveRequests::Admit(std::span<const RequestId> admitted, Clock::time_point now) {
  for (const RequestId id : admitted) {
    CHECK(!waiting_.empty() && waiting_.front()->id == id)
        << "request " << static_cast<uint64_t>(id) << " is not the first in the queue";
    waiting_.front()->state = SequenceState::kRunning;
    waiting_.front()->admitted_at = now;
    running_.push_back(std::move(waiting_.front()));
    waiting_.pop_front();
  }
}

std::optional<Clock::time_point> ActiveRequests::NearestDeadline() const {
  std::optional<Clock::time_point> nearest;
  const auto visit = [&nearest](const std::unique_ptr<Sequence>& sequence) {
    const std::optional<Clock::time_point>& deadline = sequence->request.deadline;
    if (deadline.has_value() && (!nearest.has_value() || *deadline < *nearest)) {
      nearest = deadline;
    }
  };
  std::ranges::for_each(waiting_, visit);
  std::ranges::for_each(running_, visit);
  return nearest;
}

EngineLoad ActiveRequests::Load() const {
  return {
      .running_requests = published_running_.load(std::memory_order_relaxed),
      .waiting_requests = published_waiting_.load(std::memory_order_relaxed),
      .available_blocks = published_available_blocks_.load(std::memory_order_relaxed),
      .total_blocks = pool_.TotalBlocks()};
}

void ActiveRequests::PublishLoad() {
  const auto running = static_cast<int32_t>(running_.size()) - finished_running_;
  const auto waiting = static_cast<int32_t>(waiting_.size()) - finished_waiting_;
  published_running_.store(running, std::memory_order_relaxed);
  published_waiting_.store(waiting, std::memory_order_relaxed);
  published_available_blocks_.store(pool_.AvailableBlocks(), std::memory_order_relaxed);
}

}  // namespace switchyard
