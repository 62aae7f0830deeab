#pragma once

#include <atomic>
#include <csignal>
#include <functional>
#include <thread>

namespace switchyard {

// Keeps SIGTERM and SIGINT from ending the process; they wait for a StopSignalThread. Make it
// before any other thread, because threads inherit which signals they leave alone. Puts things back
// when destroyed.
class BlockedStopSignals {
 public:
  BlockedStopSignals();
  ~BlockedStopSignals();
  BlockedStopSignals(const BlockedStopSignals&) = delete;
  BlockedStopSignals& operator=(const BlockedStopSignals&) = delete;

  const sigset_t& signals() const { return signals_; }

 private:
  sigset_t signals_;
  sigset_t previous_mask_;
};

// Calls `on_signal` on a thread of its own: with 1 for the first of these signals, 2 for the
// second, and so on. Signals that came while they were blocked count. Ends with this object.
class StopSignalThread {
 public:
  StopSignalThread(const BlockedStopSignals& blocked, std::function<void(int count)> on_signal);
  ~StopSignalThread();
  StopSignalThread(const StopSignalThread&) = delete;
  StopSignalThread& operator=(const StopSignalThread&) = delete;

 private:
  void Run();

  const BlockedStopSignals& blocked_;
  const std::function<void(int count)> on_signal_;
  std::atomic<bool> ending_ = false;
  std::thread thread_;
};

}  // namespace switchyard
