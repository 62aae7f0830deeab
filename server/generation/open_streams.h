#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>

#include "base/mutex.h"
#include "base/status.h"
#include "engine/request.h"

namespace switchyard {

// An RPC that generates, or profiles a text, from its first moment until gRPC is done with it.
class OpenStream {
 public:
  OpenStream() = default;
  OpenStream(const OpenStream&) = delete;
  OpenStream& operator=(const OpenStream&) = delete;
  virtual ~OpenStream() = default;

  // Told from time to time, to see who waits too long.
  virtual void OnTick(Clock::time_point now) = 0;
};

// All of them: how many there may be, and a shutdown that waits for them. Thread-safe.
class OpenStreams {
 public:
  explicit OpenStreams(int32_t max_streams) : max_streams_(max_streams) {}

  // RESOURCE_EXHAUSTED when there are max_streams already. Each that was taken must be closed.
  Status Open(const std::shared_ptr<OpenStream>& stream);
  // One that is not here is ignored.
  void Close(const OpenStream& stream);

  void Tick(Clock::time_point now);

  // Returns when none is open, the time has come, or StopWaiting was called; says how many are
  // left.
  int32_t WaitUntilNone(Clock::time_point deadline);
  void StopWaiting();

  int32_t Count() const;

 private:
  const int32_t max_streams_;
  mutable Mutex mutex_;
  ConditionVariable changed_;
  std::unordered_map<const OpenStream*, std::weak_ptr<OpenStream>> streams_ ABSL_GUARDED_BY(mutex_);
  bool stop_waiting_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace switchyard
