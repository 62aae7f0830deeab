#include "server/connections/grpc_listener.h"

#include <grpcpp/security/server_credentials.h>

#include <utility>

#include "server/listen_address.h"
#include "server/tls/server_credentials.h"

namespace switchyard {
namespace {

using Acceptor = grpc::experimental::ExternalConnectionAcceptor;

// gRPC takes an address without a port for one with port 443, which nobody means.
bool IsUnix(const std::string& address) {
  return address.rfind("unix:", 0) == 0 && address.size() > 5;
}

void SetLimits(const ConnectionLimits& limits, grpc::ServerBuilder& builder) {
  builder.SetMaxReceiveMessageSize(limits.max_receive_message_bytes);
  builder.SetMaxSendMessageSize(limits.max_send_message_bytes);
  builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, limits.max_metadata_bytes);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, limits.max_streams_per_connection);
  builder.AddChannelArgument(
      GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, static_cast<int>(limits.handshake_timeout.count())
  );
  builder.AddChannelArgument(
      GRPC_ARG_MAX_CONNECTION_IDLE_MS, static_cast<int>(limits.idle_timeout.count())
  );
}

// A long quiet stream is normal: a request may wait in the queue. So clients may ping often, and
// the server finds out itself that a client's machine is gone.
void SetKeepalive(const ConnectionLimits& limits, grpc::ServerBuilder& builder) {
  builder.AddChannelArgument(
      GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
      static_cast<int>(limits.min_ping_interval.count())
  );
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, 2);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 60'000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 20'000);
}

}  // namespace

StatusOr<std::unique_ptr<GrpcListener>> GrpcListener::Listen(
    const std::string& address,
    const ConnectionLimits& limits,
    const TlsStore* tls,
    const std::vector<grpc::Service*>& services
) {
  std::unique_ptr<GrpcListener> listener(new GrpcListener());
  listener->credentials_ =
      tls == nullptr ? grpc::InsecureServerCredentials() : MakeServerCredentials(*tls);
  grpc::ServerBuilder builder;
  if (IsUnix(address)) {
    builder.AddListeningPort(address, listener->credentials_);
  } else {
    ASSIGN_OR_RETURN(ListeningSockets sockets, ListeningSockets::Open(address));
    listener->acceptor_.emplace(
        std::move(sockets), limits.max_connections, limits.max_connections_per_host
    );
    listener->door_ = builder.experimental().AddExternalConnectionAcceptor(
        grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD,
        listener->credentials_
    );
  }
  for (grpc::Service* service : services) {
    builder.RegisterService(service);
  }
  SetLimits(limits, builder);
  SetKeepalive(limits, builder);
  listener->server_ = builder.BuildAndStart();
  if (listener->server_ == nullptr) {
    return FailedPrecondition("cannot listen on \"", address, "\": gRPC's log has the reason");
  }
  if (listener->acceptor_) {
    listener->acceptor_->Start([door = listener->door_.get()](int listening, int descriptor) {
      Acceptor::NewConnectionParameters connection;
      connection.listener_fd = listening;
      connection.fd = descriptor;
      door->HandleNewConnection(&connection);
    });
  }
  return listener;
}

GrpcListener::~GrpcListener() {
  Shutdown(std::chrono::system_clock::now());
}

void GrpcListener::Shutdown(std::chrono::system_clock::time_point deadline) {
  if (std::exchange(is_shut_down_, true) || server_ == nullptr) {
    return;
  }
  if (acceptor_) {
    acceptor_->Stop();
  }
  server_->Shutdown(deadline);
  server_->Wait();
}

}  // namespace switchyard
