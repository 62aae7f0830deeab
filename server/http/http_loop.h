#pragma once

#include <poll.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "server/bounded_task_queue.h"
#include "server/connections/listening_sockets.h"
#include "server/http/http_connection.h"
#include "server/tls/tls_context.h"
#include "server/tls/tls_store.h"

namespace switchyard {

struct HttpLoopOptions {
  const TlsStore* tls = nullptr;  // null: in the clear; must outlive the loop
  ClientCertificates client_certificates = ClientCertificates::kIgnored;
  // For a whole head, and again for a whole answer.
  std::chrono::milliseconds client_timeout{10'000};
};

// One thread that reads and writes for all connections of an HTTP port, and a few that make answers
// and never see a client. So a client that sends or reads a byte now and then holds up nobody. When
// there are too many connections, the one that has been reading or writing for longest goes.
// Thread-safe.
class HttpLoop {
 public:
  // Turns a head ("GET / HTTP/1.1\r\n...\r\n\r\n") of a host into a whole response. From several
  // threads; must not throw.
  using Answerer = std::function<std::string(const std::string& head, const std::string& host)>;

  HttpLoop(ListeningSockets sockets, const HttpLoopOptions& options, Answerer answerer);
  ~HttpLoop();
  HttpLoop(const HttpLoop&) = delete;
  HttpLoop& operator=(const HttpLoop&) = delete;

  int port() const { return sockets_.port(); }

 private:
  using Connections = std::list<std::shared_ptr<HttpConnection>>;  // from old to new
  struct Answered {
    std::shared_ptr<HttpConnection> connection;
    std::string text;
  };

  void Run();
  void WaitForEvents();
  void AcceptAll(int listening);
  void MakeRoom();
  void Advance(const std::shared_ptr<HttpConnection>& connection);
  void TakeAnswers();
  std::shared_ptr<SSL_CTX> CurrentContext();

  const ListeningSockets sockets_;
  const HttpLoopOptions options_;
  const Answerer answerer_;
  int wake_ = -1;  // an eventfd: an answer is there, or the end
  Mutex mutex_;
  std::vector<Answered> answered_ ABSL_GUARDED_BY(mutex_);
  bool is_ending_ ABSL_GUARDED_BY(mutex_) = false;
  // Of the loop's thread.
  Connections connections_;
  std::shared_ptr<const TlsIdentity> identity_;  // of context_
  std::shared_ptr<SSL_CTX> context_;
  // Last, so that they end first.
  BoundedTaskQueue workers_;
  std::thread thread_;
};

}  // namespace switchyard
