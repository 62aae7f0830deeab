#pragma once

#include <openssl/ssl.h>

#include <memory>

#include "base/status.h"
#include "server/tls/tls_identity.h"

namespace switchyard {

enum class ClientCertificates : uint8_t { kIgnored, kRequired };

// What OpenSSL makes a server's connections from: TLS 1.2 or later, with this identity. With
// kRequired only clients that its client_ca vouches for get through the handshake.
StatusOr<std::shared_ptr<SSL_CTX>> MakeTlsContext(
    const TlsIdentity& identity, ClientCertificates client_certificates
);

}  // namespace switchyard
