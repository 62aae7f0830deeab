#pragma once

#include <grpcpp/security/server_credentials.h>

#include <memory>

#include "server/tls/tls_store.h"

namespace switchyard {

// TLS for one listening address of gRPC: each new connection gets what `store`, which must outlive
// the server, holds at that moment. With a client_ca, clients without a certificate of it are
// refused in the handshake.
std::shared_ptr<grpc::ServerCredentials> MakeServerCredentials(const TlsStore& store);

}  // namespace switchyard
