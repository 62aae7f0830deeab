#include "server/tls/server_credentials.h"

#include <grpc/grpc_security.h>

#include <string>

#include "base/check.h"

namespace switchyard {
namespace {

// gRPC's C++ interface has no way to the C credentials that ask for their certificate anew at each
// handshake; this class is that way.
class ReloadingCredentials final : public grpc::ServerCredentials {
 public:
  explicit ReloadingCredentials(const TlsStore& store) : store_(store) {
    const bool asks_clients = !store.Current()->client_ca.empty();
    credentials_ = grpc_ssl_server_credentials_create_with_options(
        grpc_ssl_server_credentials_create_options_using_config_fetcher(
            asks_clients ? GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY
                         : GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE,
            &ReloadingCredentials::Fetch,
            this
        )
    );
    CHECK(credentials_ != nullptr) << "gRPC made no credentials";
  }
  ~ReloadingCredentials() override { grpc_server_credentials_release(credentials_); }

  void SetAuthMetadataProcessor(const std::shared_ptr<grpc::AuthMetadataProcessor>& /*processor*/)
      override {
    CHECK(false) << "calls are authenticated elsewhere";
  }

 private:
  int AddPortToServer(const std::string& address, grpc_server* server) override {
    return grpc_server_add_http2_port(server, address.c_str(), credentials_);
  }

  // gRPC calls this at each handshake, one at a time.
  static grpc_ssl_certificate_config_reload_status Fetch(
      void* data, grpc_ssl_server_certificate_config** config
  ) {
    auto& self = *static_cast<ReloadingCredentials*>(data);
    std::shared_ptr<const TlsIdentity> current = self.store_.Current();
    if (current == self.given_) {
      return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_UNCHANGED;
    }
    const grpc_ssl_pem_key_cert_pair pair = {
        .private_key = current->private_key.c_str(),
        .cert_chain = current->certificate_chain.c_str()};
    // gRPC insists on authorities, also where no client is asked for a certificate and they are not
    // used.
    const std::string& authorities =
        current->client_ca.empty() ? current->certificate_chain : current->client_ca;
    *config = grpc_ssl_server_certificate_config_create(authorities.c_str(), &pair, 1);
    self.given_ = std::move(current);
    return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_NEW;
  }

  const TlsStore& store_;
  std::shared_ptr<const TlsIdentity> given_;  // null before the first handshake
  grpc_server_credentials* credentials_ = nullptr;
};

}  // namespace

std::shared_ptr<grpc::ServerCredentials> MakeServerCredentials(const TlsStore& store) {
  return std::make_shared<ReloadingCredentials>(store);
}

}  // namespace switchyard
