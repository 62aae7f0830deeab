#include "server/http/http_server.h"

#include <exception>
#include <utility>

#include "server/http/http_loop.h"
#include "server/http/http_pages.h"
#include "server/http/page_server.h"

namespace switchyard {
namespace {

HttpLoopOptions LoopOptionsOf(const HttpOptions& options, const TlsStore* tls) {
  HttpLoopOptions loop{.client_timeout = options.client_timeout};
  if (tls == nullptr || options.tls == HttpTls::kOff) {
    return loop;
  }
  loop.tls = tls;
  if (options.tls == HttpTls::kAsGrpc && !tls->Current()->client_ca.empty()) {
    loop.client_certificates = ClientCertificates::kRequired;
  }
  return loop;
}

class LoopServer final : public HttpServer {
 public:
  LoopServer(
      ListeningSockets sockets, const HttpOptions& options, ServingState& state, const TlsStore* tls
  ) {
    AddPages(state, pages_);
    GuardPages(state, options.open, pages_);
    loop_.emplace(
        std::move(sockets),
        LoopOptionsOf(options, tls),
        [this](const std::string& head, const std::string& host) {
          return pages_.Answer(head, host);
        }
    );
  }

  int port() const override { return loop_->port(); }

 private:
  PageServer pages_;
  std::optional<HttpLoop> loop_;  // last: it uses the pages
};

}  // namespace

StatusOr<std::unique_ptr<HttpServer>> HttpServer::Listen(
    const HttpOptions& options, ServingState& state, const TlsStore* tls
) {
  try {
    StatusOr<ListeningSockets> sockets = ListeningSockets::Open(options.listen_address);
    if (!sockets.ok()) {
      return WithContext(sockets.status(), "HTTP");
    }
    return std::make_unique<LoopServer>(*std::move(sockets), options, state, tls);
  } catch (const std::exception& error) {
    return FailedPrecondition("HTTP server: ", error.what());
  }
}

}  // namespace switchyard
