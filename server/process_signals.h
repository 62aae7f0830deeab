#pragma once

#include <atomic>
#include <csignal>
#include <functional>
#include <thread>

namespace switchyard {

// Keeps SIGTERM, SIGINT and SIGHUP from ending the process; they wait for a SignalThread. Make it
// before any other thread, because threads inherit which signals they leave alone. Puts things back
// when destroyed.
class BlockedSignals {
 public:
  BlockedSignals();
  ~BlockedSignals();
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

  const sigset_t& signals() const { return signals_; }

 private:
  sigset_t signals_;
  sigset_t previous_mask_;
};

struct SignalHandlers {
  // SIGTERM or SIGINT: with 1 for the first of them, 2 for the second, and so on.
  std::function<void(int count)> on_stop;
  std::function<void()> on_hangup;
};

// Calls the handlers on a thread of its own. Signals that came while they were blocked count. Ends
// with this object.
class SignalThread {
 public:
  SignalThread(const BlockedSignals& blocked, SignalHandlers handlers);
  ~SignalThread();
  SignalThread(const SignalThread&) = delete;
  SignalThread& operator=(const SignalThread&) = delete;

 private:
  void Run();

  const BlockedSignals& blocked_;
  const SignalHandlers handlers_;
  std::atomic<bool> ending_ = false;
  std::thread thread_;
};

}  // namespace switchyard
