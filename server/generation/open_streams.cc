#include "server/generation/open_streams.h"

#include <vector>

namespace switchyard {

Status OpenStreams::Open(const std::shared_ptr<OpenStream>& stream) {
  const MutexLock lock(mutex_);
  if (streams_.size() >= static_cast<size_t>(max_streams_)) {
    return ResourceExhausted(
        streams_.size(),
        " streams are open; this server takes ",
        max_streams_,
        "; try again later, or on another server"
    );
  }
  streams_.emplace(stream.get(), stream);
  return OkStatus();
}

void OpenStreams::Close(const OpenStream& stream) {
  const MutexLock lock(mutex_);
  streams_.erase(&stream);
  changed_.NotifyAll();
}

void OpenStreams::Tick(Clock::time_point now) {
  std::vector<std::shared_ptr<OpenStream>> streams;
  {
    const MutexLock lock(mutex_);
    streams.reserve(streams_.size());
    for (const auto& [address, weak] : streams_) {
      if (std::shared_ptr<OpenStream> stream = weak.lock()) {
        streams.push_back(std::move(stream));
      }
    }
  }
  // Without the lock: a stream may close itself.
  for (const std::shared_ptr<OpenStream>& stream : streams) {
    stream->OnTick(now);
  }
}

int32_t OpenStreams::WaitUntilNone(Clock::time_point deadline) {
  const MutexLock lock(mutex_);
  while (!streams_.empty() && !stop_waiting_ && changed_.WaitUntil(mutex_, deadline)) {
  }
  return static_cast<int32_t>(streams_.size());
}

void OpenStreams::StopWaiting() {
  const MutexLock lock(mutex_);
  stop_waiting_ = true;
  changed_.NotifyAll();
}

int32_t OpenStreams::Count() const {
  const MutexLock lock(mutex_);
  return static_cast<int32_t>(streams_.size());
}

}  // namespace switchyard
