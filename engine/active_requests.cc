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

// The order of running_.
bool RunsBefore(const std::unique_ptr<Sequence>& a, const std::unique_ptr<Sequence>& b) {
  return a->request.priority != b->request.priority ? a->request.priority > b->request.priority
                                                    : a->arrival < b->arrival;
}

}  // namespace

ActiveRequests::ActiveRequests(int32_t total_blocks, const EngineOptions& options)
    : block_tokens_(options.limits.block_tokens),
      max_running_(static_cast<size_t>(options.limits.max_running)),
      pool_(total_blocks, options.limits.block_tokens),
      waiting_(options.ageing) {
  running_.reserve(max_running_);
  PublishLoad();
}

void ActiveRequests::Add(std::unique_ptr<Sequence> sequence) {
  sequence->arrival = ++arrivals_;
  for (const auto& follower : sequence->followers) {
    follower->arrival = sequence->arrival;
    ++followers_;
  }
  waiting_.Push(std::move(sequence));
  PublishLoad();
}

void ActiveRequests::ForEach(absl::FunctionRef<void(Sequence&)> visit) const {
  const auto visit_all = [visit](Sequence& sequence) {
    visit(sequence);
    for (const auto& follower : sequence.followers) {
      visit(*follower);
    }
  };
  for (const auto& sequence : running_) {
    visit_all(*sequence);
  }
  waiting_.ForEach(visit_all);
}

void ActiveRequests::Cancel(RequestId id, Clock::time_point now) {
  ForEach([this, id, now](Sequence& sequence) {
    if (sequence.request_id == id) {
      FinishWith(sequence, FinishReason::kCancelled, now);
    }
  });
  RemoveFinished();
}

void ActiveRequests::CancelAll(Clock::time_point now) {
  ForEach([this, now](Sequence& sequence) { FinishWith(sequence, FinishReason::kCancelled, now); });
  RemoveFinished();
}

void ActiveRequests::ExpireDeadlines(Clock::time_point now) {
  ForEach([this, now](Sequence& sequence) {
    if (IsPast(sequence.request.deadline, now)) {
      FinishWith(sequence, FinishReason::kDeadline, now);
    }
  });
  RemoveFinished();
}

void ActiveRequests::Finish(Sequence& sequence, const FinishEvent& event) {
  LogDebug(
      "event=sequence_finished request_id={} completion={} reason={} prompt_tokens={} "
      "completion_tokens={}",
      static_cast<uint64_t>(sequence.request_id),
      event.completion,
      static_cast<int>(event.reason),
      event.prompt_tokens,
      event.completion_tokens
  );
  const std::shared_ptr<TokenSink> sink = sequence.request.sink;
  const std::shared_ptr<BeamGroup> beams = sequence.beams;
  Drop(sequence);
  if (beams == nullptr) {
    sink->OnFinished(event);
    return;
  }
  // One beam speaks for all.
  FinishEvent completion_event = event;
  for (int32_t index = 0; index < beams->completions && !beams->has_ended; ++index) {
    completion_event.completion = index;
    completion_event.completion_tokens = 0;
    sink->OnFinished(completion_event);
  }
  beams->has_ended = true;
}

void ActiveRequests::Drop(Sequence& sequence) {
  ReleaseBlocks(pool_, sequence);
  ++(sequence.state == SequenceState::kRunning ? finished_running_ : finished_waiting_);
  sequence.state = SequenceState::kFinished;
  sequence.request.sink.reset();
  PublishLoad();
}

Sequence& ActiveRequests::Fork(const Sequence& parent, int32_t beam) {
  // Numbered apart from what Submit numbers.
  constexpr uint64_t kForked = uint64_t{1} << 63;
  auto sequence = std::make_unique<Sequence>(parent, RequestId{kForked | ++forks_});
  sequence->beam = beam;
  sequence->state = SequenceState::kRunning;
  ShareBlocks(pool_, parent, *sequence);
  Sequence& forked = *sequence;
  running_.insert(std::ranges::upper_bound(running_, sequence, RunsBefore), std::move(sequence));
  return forked;
}

void ActiveRequests::Reassign(Sequence& sequence, const Sequence& parent) {
  ReleaseBlocks(pool_, sequence);
  sequence.tokens = parent.tokens;
  sequence.most_computed_tokens = std::min(sequence.most_computed_tokens, sequence.KnownTokens());
  if (sequence.state == SequenceState::kRunning && parent.state == SequenceState::kRunning) {
    ShareBlocks(pool_, parent, sequence);
  }
}

void ActiveRequests::FinishWith(Sequence& sequence, FinishReason reason, Clock::time_point now) {
  FinishEvent event = sequence.Finish(now);
  event.reason = reason;
  Finish(sequence, event);
}

void ActiveRequests::ReleaseFollowers(Sequence& sequence) {
  for (std::unique_ptr<Sequence>& follower : sequence.followers) {
    --followers_;
    if (follower->state == SequenceState::kFinished) {
      --finished_waiting_;
    } else {
      waiting_.Push(std::move(follower));
    }
  }
  sequence.followers.clear();
}

void ActiveRequests::RemoveFinished() {
  if (finished_running_ > 0) {
    for (const auto& sequence : running_) {
      if (sequence->state == SequenceState::kFinished) {
        ReleaseFollowers(*sequence);
      }
    }
    std::erase_if(running_, [](const std::unique_ptr<Sequence>& sequence) {
      return sequence->state == SequenceState::kFinished;
    });
    finished_running_ = 0;
  }
  if (finished_waiting_ > 0) {
    ReleaseFollowersOfFinished();
    waiting_.RemoveFinished();
    finished_waiting_ = 0;
  }
}

void ActiveRequests::ReleaseFollowersOfFinished() {
  // Not while going through the queue, which they enter.
  std::vector<Sequence*> leaders;
  waiting_.ForEach([&leaders](Sequence& sequence) {
    if (sequence.state == SequenceState::kFinished && !sequence.followers.empty()) {
      leaders.push_back(&sequence);
    }
  });
  std::ranges::for_each(leaders, [this](Sequence* leader) { ReleaseFollowers(*leader); });
}

void ActiveRequests::Describe(
    Clock::time_point now, const Scheduler& scheduler, SchedulerState& state
) {
  state.waiting.clear();
  state.running.clear();
  state.available_blocks = pool_.AvailableBlocks();
  // Counting the blocks of each is worth it only when a step may run out of them.
  const bool blocks_are_short =
      pool_.AvailableBlocks() < scheduler.MostBlocksOfAStep(static_cast<int64_t>(running_.size()));
  for (const auto& sequence : running_) {
    state.running.push_back(DescribeRunning(*sequence, blocks_are_short));
  }
  // No step admits more than may run at once, or more than it has tokens for.
  size_t places = max_running_ - std::min(max_running_, running_.size());
  int64_t tokens = scheduler.limits().max_step_tokens;
  if (places == 0) {
    return;
  }
  waiting_.VisitInOrder(now, [&](Sequence& sequence) {
    // A beam that was preempted after it had reported waits for the others of its search.
    if (sequence.beams != nullptr && sequence.beams->search.HasReported(sequence.beam)) {
      return true;
    }
    const ScheduledRequest& described = state.waiting.emplace_back(DescribeWaiting(sequence));
    tokens -= described.known_tokens - described.computed_tokens;
    return --places > 0 && tokens > 0;
  });
}

ScheduledRequest ActiveRequests::DescribeRunning(const Sequence& sequence, bool blocks_are_short)
    const {
  ScheduledRequest described{
      .id = sequence.id,
      .arrival = sequence.arrival,
      .known_tokens = sequence.KnownTokens(),
      .computed_tokens = sequence.computed_tokens,
      .blocks_held = static_cast<int32_t>(sequence.blocks.size()),
      .max_total_tokens = sequence.max_total_tokens,
      .slots = sequence.slots,
      .copies_block = CopiesBlock(pool_, sequence, block_tokens_)};
  if (blocks_are_short) {
    described.returnable_blocks =
        static_cast<int32_t>(std::ranges::count_if(sequence.blocks, [this](BlockId block) {
          return pool_.HasOneReader(block);
        }));
  }
  return described;
}

ScheduledRequest ActiveRequests::DescribeWaiting(Sequence& sequence) {
  FindPrefix(pool_, sequence, block_tokens_, prefix_);
  const auto cached_blocks = static_cast<int32_t>(prefix_.size());
  const int32_t cached_tokens = TokensOfPrefix(sequence, cached_blocks, block_tokens_);
  return {
      .id = sequence.id,
      .arrival = sequence.arrival,
      .known_tokens = sequence.KnownTokens(),
      .computed_tokens = cached_tokens,
      .blocks_held = cached_blocks,
      .max_total_tokens = sequence.max_total_tokens,
      .slots = sequence.slots,
      // A prefix that reaches the last token ends inside a block that is others' too.
      .copies_block = cached_tokens < cached_blocks * block_tokens_,
      .returnable_blocks = static_cast<int32_t>(std::ranges::count_if(
          prefix_, [this](BlockId block) { return !pool_.IsHeld(block); }
      ))};
}

void ActiveRequests::Apply(const StepPlan& plan, Clock::time_point now, StepWork& work) {
  Preempt(plan.preempted);
  // Before any block is allocated, as that may evict a prefix that the plan counts on.
  Admit(plan.admitted, now);
  work.slices.clear();
  work.copies.clear();
  size_t place = 0;
  for (const PlannedSlice& planned : plan.slices) {
    // Slices come nearly in running order, so looking goes on where the last one was found.
    size_t looked_at = 0;
    while (running_[place % running_.size()]->id != planned.id) {
      ++place;
      CHECK(++looked_at <= running_.size()) << plan.ToString();
    }
    Sequence& sequence = *running_[place % running_.size()];
    if (const auto copy =
            TakeBlocks(pool_, sequence, block_tokens_, planned.first_token + planned.tokens)) {
      work.copies.push_back(*copy);
    }
    work.slices.push_back({.sequence = &sequence, .planned = planned});
  }
  PublishLoad();
}

void ActiveRequests::Preempt(std::span<const RequestId> preempted) {
  for (const RequestId id : preempted) {
    const auto place =
        std::ranges::find_if(running_, [id](const auto& other) { return other->id == id; });
    CHECK(place != running_.end()) << "request " << static_cast<uint64_t>(id);
    std::unique_ptr<Sequence> sequence = std::move(*place);
    running_.erase(place);
    ReleaseBlocks(pool_, *sequence);
    sequence->state = SequenceState::kWaiting;
    LogDebug(
        "event=preempted request_id={} tokens={}",
        static_cast<uint64_t>(id),
        sequence->KnownTokens()
    );
    waiting_.Push(std::move(sequence));
    published_preempted_.fetch_add(1, std::memory_order_relaxed);
  }
}

void ActiveRequests::Admit(std::span<const RequestId> admitted, Clock::time_point now) {
  for (const RequestId id : admitted) {
    std::unique_ptr<Sequence> sequence = waiting_.Take(id);
    FindPrefix(pool_, *sequence, block_tokens_, prefix_);
    TakePrefix(pool_, *sequence, block_tokens_, prefix_);
    sequence->state = SequenceState::kRunning;
    if (!sequence->admitted_at.has_value()) {
      sequence->admitted_at = now;
      sequence->cached_prompt_tokens = std::min(sequence->computed_tokens, sequence->prompt_tokens);
      published_cached_prompt_tokens_.fetch_add(
          sequence->cached_prompt_tokens, std::memory_order_relaxed
      );
    }
    const auto place = std::ranges::upper_bound(running_, sequence, RunsBefore);
    running_.insert(place, std::move(sequence));
  }
}

void ActiveRequests::Computed(const SequenceSlice& slice) {
  Sequence& sequence = *slice.sequence;
  sequence.computed_tokens += slice.planned.tokens;
  sequence.most_computed_tokens = std::max(sequence.most_computed_tokens, sequence.computed_tokens);
  RememberFullBlocks(pool_, sequence, block_tokens_);
}

std::optional<Clock::time_point> ActiveRequests::NearestDeadline() const {
  std::optional<Clock::time_point> nearest;
  ForEach([&nearest](const Sequence& sequence) {
    const std::optional<Clock::time_point>& deadline = sequence.request.deadline;
    if (deadline.has_value() && (!nearest.has_value() || *deadline < *nearest)) {
      nearest = deadline;
    }
  });
  return nearest;
}

EngineLoad ActiveRequests::Load() const {
  return {
      .running_requests = published_running_.load(std::memory_order_relaxed),
      .waiting_requests = published_waiting_.load(std::memory_order_relaxed),
      .available_blocks = published_available_blocks_.load(std::memory_order_relaxed),
      .cached_blocks = published_cached_blocks_.load(std::memory_order_relaxed),
      .total_blocks = pool_.TotalBlocks(),
      .preempted_total = published_preempted_.load(std::memory_order_relaxed),
      .cached_prompt_tokens_total =
          published_cached_prompt_tokens_.load(std::memory_order_relaxed)};
}

void ActiveRequests::PublishLoad() {
  const auto running = static_cast<int32_t>(running_.size()) - finished_running_;
  const auto waiting = static_cast<int32_t>(waiting_.size()) + followers_ - finished_waiting_;
  published_running_.store(running, std::memory_order_relaxed);
  published_waiting_.store(waiting, std::memory_order_relaxed);
  published_available_blocks_.store(pool_.AvailableBlocks(), std::memory_order_relaxed);
  published_cached_blocks_.store(pool_.CachedBlocks(), std::memory_order_relaxed);
}

}  // namespace switchyard
