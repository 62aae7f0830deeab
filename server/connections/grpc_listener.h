#pragma once

#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "server/connections/tcp_acceptor.h"
#include "server/tls/tls_store.h"

namespace switchyard {

// What clients of a gRPC address may cost.
struct ConnectionLimits {
  int32_t max_connections = 10'000;  // 0: any number, as the next
  int32_t max_connections_per_host = 0;
  int32_t max_streams_per_connection = 1024;  // calls that are open; more wait in the client
  int32_t max_metadata_bytes = 8192;          // of a call; more is RESOURCE_EXHAUSTED
  int32_t max_receive_message_bytes = 16 << 20;
  int32_t max_send_message_bytes = 64 << 20;
  // For TLS and the first frame of HTTP/2.
  std::chrono::milliseconds handshake_timeout{10'000};
  // A connection without a call for so long is closed; clients open another when they need it.
  std::chrono::milliseconds idle_timeout{600'000};
  // Clients may ping this often, also while nothing is sent; more often cuts their connection.
  // gRPC's own clients ping once a second at most.
  std::chrono::milliseconds min_ping_interval{500};
};

// gRPC on one address, with limits on connections, which gRPC itself has not.
// Thread-compatible.
class GrpcListener {
 public:
  // `address` is HOST:PORT, [IPV6]:PORT or unix:PATH, which has no limit on connections. `tls` may
  // be null (plaintext). Both it and `services` must outlive this. INVALID_ARGUMENT for an address
  // that is none, FAILED_PRECONDITION when it cannot be listened on.
  static StatusOr<std::unique_ptr<GrpcListener>> Listen(
      const std::string& address,
      const ConnectionLimits& limits,
      const TlsStore* tls,
      const std::vector<grpc::Service*>& services
  );
  ~GrpcListener();
  GrpcListener(const GrpcListener&) = delete;
  GrpcListener& operator=(const GrpcListener&) = delete;

  // Gives calls that run until `deadline`, then waits for their end. A second call does nothing.
  void Shutdown(std::chrono::system_clock::time_point deadline);

  grpc::Server& server() { return *server_; }
  // 0 for a unix socket.
  int port() const { return acceptor_ ? acceptor_->port() : 0; }

 private:
  GrpcListener() = default;

  std::shared_ptr<grpc::ServerCredentials> credentials_;  // gRPC refers to it
  std::optional<TcpAcceptor> acceptor_;                   // absent for a unix socket
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> door_;
  std::unique_ptr<grpc::Server> server_;
  bool is_shut_down_ = false;
};

}  // namespace switchyard
