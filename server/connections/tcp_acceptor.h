#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <thread>

#include "base/mutex.h"
#include "server/call/log_limiter.h"
#include "server/connections/connection_table.h"
#include "server/connections/listening_sockets.h"

namespace switchyard {

// A thread that accepts connections and hands them on, as many as there may be; others are closed
// at once, so that they end here and not in a lack of memory or files. Thread-safe.
class TcpAcceptor {
 public:
  // Gets an open connection and closes it some day.
  using Handler = std::function<void(int listening, int descriptor)>;

  // 0: no limit.
  TcpAcceptor(ListeningSockets sockets, int32_t max_connections, int32_t max_per_host);
  ~TcpAcceptor() { Stop(); }
  TcpAcceptor(const TcpAcceptor&) = delete;
  TcpAcceptor& operator=(const TcpAcceptor&) = delete;

  // Once.
  void Start(Handler handler);
  // No connection is handed on after it, and nobody listens any more: clients are refused at once
  // instead of waiting to be accepted. A second call does nothing.
  void Stop();

  int port() const { return port_; }

 private:
  void Run();
  void AcceptAll(int listening);

  std::optional<ListeningSockets> sockets_;  // absent once stopped
  const int port_;
  int wake_ = -1;          // an eventfd that ends the thread
  ConnectionTable table_;  // of the thread
  LogLimiter refusals_{1};
  Handler handler_;
  std::thread thread_;
};

}  // namespace switchyard
