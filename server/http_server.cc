#include "server/http_server.h"

#include <httplib.h>

#include <atomic>
#include <exception>
#include <thread>
#include <utility>

#include "base/log.h"
#include "server/bounded_task_queue.h"
#include "server/http_pages.h"
#include "server/listen_address.h"

namespace switchyard {
namespace {

constexpr int kThreads = 4;
constexpr int kWaitingConnections = 16;
constexpr time_t kFirstByteSeconds = 2;
constexpr size_t kMaxPayloadBytes = 1024;  // nobody has reason to send a body

class LibraryServer final : public HttpServer {
 public:
  LibraryServer(const HttpOptions& options, ServingState& state) {
    server_.new_task_queue = [] { return new BoundedTaskQueue(kThreads, kWaitingConnections); };
    server_.set_keep_alive_max_count(1);
    server_.set_keep_alive_timeout(kFirstByteSeconds);
    server_.set_read_timeout(options.client_timeout);
    server_.set_write_timeout(options.client_timeout);
    server_.set_payload_max_length(kMaxPayloadBytes);
    // Not the library's, which lets two servers share a port.
    server_.set_socket_options([](socket_t socket) {
      const int yes = 1;
      setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    });
    AddPages(state, server_);
  }

  ~LibraryServer() override {
    server_.stop();
    if (thread_.joinable()) {
      thread_.join();
    }
  }

  Status Start(const std::string& listen_address) {
    ASSIGN_OR_RETURN(const HostAndPort address, ParseHostAndPort(listen_address));
    port_ = address.port;
    const bool is_bound = address.port == 0 ? (port_ = server_.bind_to_any_port(address.host)) > 0
                                            : server_.bind_to_port(address.host, address.port);
    if (!is_bound) {
      return FailedPrecondition(
          "cannot listen for HTTP on \"",
          listen_address,
          "\": another process has the port, or this machine has no such address; choose another"
      );
    }
    thread_ = std::thread([this] {
      server_.listen_after_bind();
      has_ended_ = true;
    });
    // A stop before the thread listens would be lost.
    while (!server_.is_running() && !has_ended_) {
      std::this_thread::yield();
    }
    return OkStatus();
  }

  int port() const override { return port_; }

 private:
  httplib::Server server_;
  int port_ = 0;
  std::atomic<bool> has_ended_ = false;
  std::thread thread_;
};

}  // namespace

StatusOr<std::unique_ptr<HttpServer>> HttpServer::Listen(
    const HttpOptions& options, ServingState& state
) {
  try {
    auto server = std::make_unique<LibraryServer>(options, state);
    RETURN_IF_ERROR(server->Start(options.listen_address));
    return StatusOr<std::unique_ptr<HttpServer>>(std::move(server));
  } catch (const std::exception& error) {
    return FailedPrecondition("HTTP server: ", error.what());
  }
}

}  // namespace switchyard
