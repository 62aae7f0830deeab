#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "clients/cpp/client.h"
#include "program/bench/load_plan.h"
#include "program/bench/load_results.h"
#include "program/bench/load_stream.h"

namespace switchyard {

// When requests are sent, and for how long.
struct LoadSchedule {
  std::optional<double> requests_per_second;  // open loop: arrivals wait for nothing
  int32_t concurrency = 1;                    // else closed loop: so many, each after one's end
  std::optional<int64_t> max_requests;        // whichever of these two comes first
  std::optional<std::chrono::nanoseconds> max_time;
  std::chrono::milliseconds deadline{0};    // of requests planned as kDeadline
  std::chrono::milliseconds stall{0};       // of requests planned as kStall
  std::chrono::milliseconds time_limit{0};  // of all others
};

struct LoadProgress {
  double done_share = 0;  // of max_requests or max_time, whichever is further
  int64_t running = 0;
  int64_t ended = 0;
  int64_t failed = 0;
  int64_t received_tokens = 0;
  double seconds = 0;
};

// The connections of a load.
struct LoadClients {
  std::vector<std::unique_ptr<Client>> ordinary;  // requests take them in turn; at least one
  // Of the readers that stall: their streams have a small window, so that the server notices.
  std::unique_ptr<Client> stalling;
};
// `options` are those of each connection, which none of them shares.
LoadClients ConnectLoad(
    const std::string& address, const ClientOptions& options, int32_t connections
);

// Sends the requests of a plan and measures what comes back. A load runs on the threads of gRPC and
// on the calling one, which sleeps until an arrival, a timer or the end.
class LoadDriver final : private LoadStream::Owner {
 public:
  // Both must outlive this object.
  LoadDriver(const LoadPlan& plan, const LoadClients& clients) : plan_(plan), clients_(clients) {}

  // Absent: never called; nothing wakes up for it.
  using OnProgress = std::function<void(const LoadProgress&)>;

  // Sends requests first_index, first_index + 1, ... and returns when all have ended. Gives up
  // early when a hundred of them in a row find no server. Call it once.
  LoadResults Run(
      const LoadSchedule& schedule, uint64_t first_index, const OnProgress& on_progress
  );

 private:
  using Owner = LoadStream::Owner;
  using TimePoint = BenchClock::time_point;
  using Action = std::function<void()>;

  void CancelAfter(LoadStream& stream, std::chrono::nanoseconds pause) override;
  void ResumeAfterStall(LoadStream& stream) override;
  void OnTokens(int32_t tokens, TimePoint now) override;
  void OnStreamDone(LoadStream& stream, RequestRecord record) override;

  // The calling thread's part: arrivals and timers until all is over.
  void Drive(const OnProgress& on_progress);
  // What is due at `now`, and what is next.
  std::vector<Action> TakeDue(TimePoint now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  TimePoint NextWake(TimePoint now, bool shows_progress) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool MayStart(TimePoint now) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool IsOver(TimePoint now) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  LoadProgress ProgressAt(TimePoint now) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The next request, counted as started, if there is one. Launch is to follow without the lock:
  // until then and until that request's end the load is not over, so that this object stays.
  std::optional<uint64_t> TakeNext(TimePoint now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Launch(uint64_t index);
  void LaunchNext();
  void At(TimePoint when, Action action) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The stream as long as it runs.
  std::weak_ptr<LoadStream> Find(uint64_t index) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Lets a place of a closed loop wait after a failure.
  void PausePlace(TimePoint now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CountUnavailable(const RequestRecord& record) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const LoadPlan& plan_;
  const LoadClients& clients_;
  // Set at the beginning of Run, constant from then on.
  LoadSchedule schedule_;
  uint64_t first_index_ = 0;
  TimePoint begin_;
  TimePoint window_end_;

  std::atomic<int64_t> received_in_window_{0};
  std::atomic<int64_t> received_{0};

  mutable Mutex mutex_;
  ConditionVariable changed_;
  std::unordered_map<uint64_t, std::shared_ptr<LoadStream>> running_ ABSL_GUARDED_BY(mutex_);
  std::multimap<TimePoint, Action> timers_ ABSL_GUARDED_BY(mutex_);
  TimePoint next_arrival_ ABSL_GUARDED_BY(mutex_);
  int64_t pausing_places_ ABSL_GUARDED_BY(mutex_) = 0;  // of a closed loop, after a failure
  int64_t unavailable_in_a_row_ ABSL_GUARDED_BY(mutex_) = 0;
  std::chrono::nanoseconds typical_first_token_ ABSL_GUARDED_BY(mutex_){10'000'000};
  TimePoint last_end_ ABSL_GUARDED_BY(mutex_);
  LoadResults results_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace switchyard
