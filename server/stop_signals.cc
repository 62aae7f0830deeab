#include "server/stop_signals.h"

#include <ctime>
#include <utility>

namespace switchyard {
namespace {

// How soon the thread notices that it is to end.
constexpr timespec kPollInterval{.tv_sec = 0, .tv_nsec = 50'000'000};

}  // namespace

BlockedStopSignals::BlockedStopSignals() : signals_(), previous_mask_() {
  sigemptyset(&signals_);
  sigaddset(&signals_, SIGTERM);
  sigaddset(&signals_, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals_, &previous_mask_);
}

BlockedStopSignals::~BlockedStopSignals() {
  pthread_sigmask(SIG_SETMASK, &previous_mask_, nullptr);
}

StopSignalThread::StopSignalThread(
    const BlockedStopSignals& blocked, std::function<void(int count)> on_signal
)
    : blocked_(blocked), on_signal_(std::move(on_signal)), thread_([this] { Run(); }) {}

StopSignalThread::~StopSignalThread() {
  ending_ = true;
  thread_.join();
}

void StopSignalThread::Run() {
  int count = 0;
  while (!ending_) {
    if (sigtimedwait(&blocked_.signals(), nullptr, &kPollInterval) > 0) {
      ++count;
      on_signal_(count);
    }
  }
}

}  // namespace switchyard
