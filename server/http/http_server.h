#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "base/status.h"
#include "server/http/http_access.h"
#include "server/serving_state.h"
#include "server/tls/tls_store.h"

namespace switchyard {

// Whether HTTP is in the clear although the server has a certificate, and whether it asks clients
// for theirs where gRPC does.
enum class HttpTls : uint8_t { kAsGrpc, kServerOnly, kOff };

struct HttpOptions {
  std::string listen_address;  // HOST:PORT or [IPV6]:PORT; port 0: any that is free; empty: no HTTP
  std::chrono::milliseconds client_timeout{10'000};  // for a request, and for taking its answer
  HttpTls tls = HttpTls::kAsGrpc;
  HttpOpen open = HttpOpen::kProbes;
};

// What people and monitors read, over HTTP on a port of its own: / (dashboard), /metrics, /healthz,
// /readyz, /v1/info, /v1/load and /v1/experts. It only reads. One answer for each connection. No
// client holds up another, and no request makes the engine wait. Thread-safe.
class HttpServer {
 public:
  // `state`, and `tls` if it is not null (in the clear), must outlive this. INVALID_ARGUMENT for an
  // address that is none, FAILED_PRECONDITION when it cannot be listened on.
  static StatusOr<std::unique_ptr<HttpServer>> Listen(
      const HttpOptions& options, ServingState& state, const TlsStore* tls = nullptr
  );
  virtual ~HttpServer() = default;

  virtual int port() const = 0;
};

}  // namespace switchyard
