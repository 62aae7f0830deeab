#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "base/status.h"
#include "server/serving_state.h"

namespace switchyard {

struct HttpOptions {
  std::string listen_address;  // HOST:PORT or [IPV6]:PORT; port 0: any that is free; empty: no HTTP
  std::chrono::milliseconds client_timeout{2000};  // for one that sends or reads nothing
};

// What people and monitors read, over HTTP on a port of its own: / (dashboard), /metrics, /healthz,
// /readyz, /v1/info, /v1/load and /v1/experts. It only reads. A few threads serve one connection
// each, which closes after its answer or a short silence; when all are taken, others wait to be
// accepted. No request makes the engine wait. Thread-safe.
class HttpServer {
 public:
  // `state` must outlive this. INVALID_ARGUMENT for an address that is none, FAILED_PRECONDITION
  // when it cannot be listened on.
  static StatusOr<std::unique_ptr<HttpServer>> Listen(
      const HttpOptions& options, ServingState& state
  );
  virtual ~HttpServer() = default;

  virtual int port() const = 0;
};

}  // namespace switchyard
