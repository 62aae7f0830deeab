#include "program/bench/load_driver.h"

#include <algorithm>
#include <utility>

namespace switchyard {
namespace {

using std::chrono::duration;
using std::chrono::duration_cast;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

constexpr milliseconds kProgressInterval{200};
// A place of a closed loop whose request was refused waits before the next one: a server that
// refuses would otherwise be asked as fast as the machine can.
constexpr milliseconds kPauseAfterFailure{100};
constexpr int64_t kUnavailableUntilGivingUp = 100;
// About one or two messages of a few tokens.
constexpr int32_t kStallingWindowBytes = 64;

nanoseconds NanosecondsOf(double seconds) {
  return duration_cast<nanoseconds>(duration<double>(seconds));
}

double SecondsOf(nanoseconds time) {
  return duration<double>(time).count();
}

}  // namespace

LoadClients ConnectLoad(
    const std::string& address, const ClientOptions& options, int32_t connections
) {
  LoadClients clients;
  ClientOptions ordinary = options;
  ordinary.own_connection = true;
  for (int32_t i = 0; i < connections; ++i) {
    clients.ordinary.push_back(std::make_unique<Client>(address, ordinary));
  }
  ClientOptions stalling = ordinary;
  stalling.stream_window_bytes = kStallingWindowBytes;
  clients.stalling = std::make_unique<Client>(address, stalling);
  return clients;
}

LoadResults LoadDriver::Run(
    const LoadSchedule& schedule, uint64_t first_index, const OnProgress& on_progress
) {
  schedule_ = schedule;
  first_index_ = first_index;
  begin_ = BenchClock::now();
  window_end_ = schedule.max_time.has_value() ? begin_ + *schedule.max_time : TimePoint::max();
  if (schedule_.requests_per_second.has_value()) {
    const MutexLock lock(mutex_);
    next_arrival_ =
        begin_ +
        NanosecondsOf(plan_.ArrivalGapSeconds(first_index, *schedule_.requests_per_second));
  } else {
    for (int32_t i = 0; i < schedule_.concurrency; ++i) {
      LaunchNext();
    }
  }
  Drive(on_progress);

  const MutexLock lock(mutex_);
  const bool whole_window = BenchClock::now() >= window_end_;
  const TimePoint end = whole_window ? window_end_ : std::max(last_end_, begin_);
  results_.window_seconds = SecondsOf(end - begin_);
  results_.gave_up = unavailable_in_a_row_ >= kUnavailableUntilGivingUp;
  results_.received_tokens_within_window = received_in_window_;
  return std::move(results_);
}

void LoadDriver::Drive(const OnProgress& on_progress) {
  const bool shows_progress = static_cast<bool>(on_progress);
  TimePoint next_progress = begin_;
  while (true) {
    std::vector<Action> due;
    LoadProgress progress;
    TimePoint now = BenchClock::now();
    {
      const MutexLock lock(mutex_);
      if (IsOver(now)) {
        return;
      }
      due = TakeDue(now);
      if (due.empty() && !(shows_progress && now >= next_progress)) {
        changed_.WaitUntil(mutex_, NextWake(now, shows_progress));
        continue;
      }
      progress = ProgressAt(now);
    }
    for (const Action& action : due) {
      action();
    }
    if (shows_progress && now >= next_progress) {
      on_progress(progress);
      next_progress = now + kProgressInterval;
    }
  }
}

std::vector<LoadDriver::Action> LoadDriver::TakeDue(TimePoint now) {
  std::vector<Action> due;
  while (!timers_.empty() && timers_.begin()->first <= now) {
    due.push_back(std::move(timers_.begin()->second));
    timers_.erase(timers_.begin());
  }
  // Late arrivals are sent at once and do not move the later ones: the load stays what it was
  // planned.
  int64_t arrivals = 0;
  while (schedule_.requests_per_second.has_value() && next_arrival_ <= now && MayStart(now) &&
         results_.started + arrivals < schedule_.max_requests.value_or(INT64_MAX)) {
    ++arrivals;
    due.emplace_back([this] { LaunchNext(); });
    const uint64_t next = first_index_ + static_cast<uint64_t>(results_.started + arrivals);
    next_arrival_ += NanosecondsOf(plan_.ArrivalGapSeconds(next, *schedule_.requests_per_second));
  }
  return due;
}

LoadDriver::TimePoint LoadDriver::NextWake(TimePoint now, bool shows_progress) const {
  // A day stands for "until something happens": waiting until time_point::max() overflows.
  TimePoint wake = now + std::chrono::hours(24);
  if (shows_progress) {
    wake = now + kProgressInterval;
  }
  if (!timers_.empty()) {
    wake = std::min(wake, timers_.begin()->first);
  }
  if (MayStart(now)) {
    wake = std::min(wake, window_end_);
    if (schedule_.requests_per_second.has_value()) {
      wake = std::min(wake, next_arrival_);
    }
  }
  return wake;
}

bool LoadDriver::MayStart(TimePoint now) const {
  return now < window_end_ && unavailable_in_a_row_ < kUnavailableUntilGivingUp &&
         results_.started < schedule_.max_requests.value_or(INT64_MAX);
}

bool LoadDriver::IsOver(TimePoint now) const {
  return running_.empty() && pausing_places_ == 0 && !MayStart(now);
}

LoadProgress LoadDriver::ProgressAt(TimePoint now) const {
  LoadProgress progress;
  progress.running = static_cast<int64_t>(running_.size());
  progress.ended = results_.started - progress.running;
  progress.failed = results_.failed;
  progress.received_tokens = received_;
  progress.seconds = SecondsOf(now - begin_);
  if (schedule_.max_requests.has_value()) {
    progress.done_share =
        static_cast<double>(progress.ended) / static_cast<double>(*schedule_.max_requests);
  }
  if (schedule_.max_time.has_value()) {
    progress.done_share =
        std::max(progress.done_share, progress.seconds / SecondsOf(*schedule_.max_time));
  }
  progress.done_share = std::min(progress.done_share, 1.0);
  return progress;
}

std::optional<uint64_t> LoadDriver::TakeNext(TimePoint now) {
  if (!MayStart(now)) {
    return std::nullopt;
  }
  const uint64_t index = first_index_ + static_cast<uint64_t>(results_.started);
  ++results_.started;
  Owner& owner = *this;
  running_.emplace(index, std::make_shared<LoadStream>(index, owner));
  return index;
}

void LoadDriver::LaunchNext() {
  std::optional<uint64_t> next;
  {
    const MutexLock lock(mutex_);
    next = TakeNext(BenchClock::now());
  }
  if (next.has_value()) {
    Launch(*next);
  }
}

void LoadDriver::Launch(uint64_t index) {
  const PlannedRequest planned = plan_.At(index);
  std::shared_ptr<LoadStream> stream;
  nanoseconds early_pause{0};
  {
    const MutexLock lock(mutex_);
    stream = running_.at(index);
    early_pause = duration_cast<nanoseconds>(typical_first_token_ * planned.early);
  }
  const bool stalls = planned.disturbance == Disturbance::kStall;
  const Client& client =
      stalls ? *clients_.stalling : *clients_.ordinary[index % clients_.ordinary.size()];
  const milliseconds limit =
      planned.disturbance == Disturbance::kDeadline ? schedule_.deadline : schedule_.time_limit;
  stream->Start(client, planned, limit, early_pause);
}

void LoadDriver::At(TimePoint when, Action action) {
  timers_.emplace(when, std::move(action));
  if (timers_.begin()->first == when) {
    changed_.NotifyAll();
  }
}

std::weak_ptr<LoadStream> LoadDriver::Find(uint64_t index) const {
  const auto found = running_.find(index);
  return found == running_.end() ? std::weak_ptr<LoadStream>() : found->second;
}

void LoadDriver::CancelAfter(LoadStream& stream, nanoseconds pause) {
  const MutexLock lock(mutex_);
  At(BenchClock::now() + pause, [weak = Find(stream.index())] {
    if (const auto running = weak.lock()) {
      running->Cancel();
    }
  });
}

void LoadDriver::ResumeAfterStall(LoadStream& stream) {
  const MutexLock lock(mutex_);
  At(BenchClock::now() + schedule_.stall, [weak = Find(stream.index())] {
    if (const auto running = weak.lock()) {
      running->Resume();
    }
  });
}

void LoadDriver::OnTokens(int32_t tokens, TimePoint now) {
  received_ += tokens;
  if (now < window_end_) {
    received_in_window_ += tokens;
  }
}

void LoadDriver::CountUnavailable(const RequestRecord& record) {
  const bool unavailable = record.status.code() == StatusCode::kUnavailable;
  unavailable_in_a_row_ = unavailable ? unavailable_in_a_row_ + 1 : 0;
}

void LoadDriver::OnStreamDone(LoadStream& stream, RequestRecord record) {
  const uint64_t index = stream.index();
  const TimePoint now = BenchClock::now();
  record.within_window = now < window_end_;
  std::shared_ptr<LoadStream> ended;  // destroyed after the lock is given back
  std::optional<uint64_t> next;
  {
    const MutexLock lock(mutex_);
    const auto found = running_.find(index);
    ended = std::move(found->second);
    running_.erase(found);
    CountUnavailable(record);
    if (record.received_tokens > 0) {
      typical_first_token_ = (7 * typical_first_token_ + record.until_first_token) / 8;
    }
    const int64_t failed_before = results_.failed;
    results_.Add(std::move(record));
    last_end_ = now;
    if (!schedule_.requests_per_second.has_value()) {
      if (results_.failed > failed_before) {
        PausePlace(now);
      } else {
        next = TakeNext(now);
      }
    }
    if (running_.empty()) {
      changed_.NotifyAll();
    }
  }
  if (next.has_value()) {
    Launch(*next);
  }
}

void LoadDriver::PausePlace(TimePoint now) {
  if (!MayStart(now)) {
    return;
  }
  ++pausing_places_;
  At(now + kPauseAfterFailure, [this] {
    {
      const MutexLock lock(mutex_);
      --pausing_places_;
    }
    LaunchNext();
  });
}

}  // namespace switchyard
