#include "server/process_signals.h"

#include <ctime>
#include <utility>

namespace switchyard {
namespace {

// How soon the thread notices that it is to end.
constexpr timespec kPollInterval{.tv_sec = 0, .tv_nsec = 50'000'000};

}  // namespace

BlockedSignals::BlockedSignals() : signals_(), previous_mask_() {
  sigemptyset(&signals_);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) {
    sigaddset(&signals_, signal);
  }
  pthread_sigmask(SIG_BLOCK, &signals_, &previous_mask_);
}

BlockedSignals::~BlockedSignals() {
  pthread_sigmask(SIG_SETMASK, &previous_mask_, nullptr);
}

SignalThread::SignalThread(const BlockedSignals& blocked, SignalHandlers handlers)
    : blocked_(blocked), handlers_(std::move(handlers)), thread_([this] { Run(); }) {}

SignalThread::~SignalThread() {
  ending_ = true;
  thread_.join();
}

void SignalThread::Run() {
  int stops = 0;
  while (!ending_) {
    const int signal = sigtimedwait(&blocked_.signals(), nullptr, &kPollInterval);
    if (signal == SIGHUP) {
      handlers_.on_hangup();
    } else if (signal > 0) {
      ++stops;
      handlers_.on_stop(stops);
    }
  }
}

}  // namespace switchyard
