#include "server/tls/tls_context.h"

#include <openssl/pem.h>
#include <openssl/x509.h>

#include <string>

#include "server/tls/openssl_error.h"

namespace switchyard {
namespace {

struct Free {
  void operator()(BIO* bio) const { BIO_free(bio); }
  void operator()(X509* certificate) const { X509_free(certificate); }
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
};
using Certificate = std::unique_ptr<X509, Free>;

std::unique_ptr<BIO, Free> Open(const std::string& text) {
  return std::unique_ptr<BIO, Free>(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

Certificate ReadCertificate(BIO& bio) {
  return Certificate(PEM_read_bio_X509(&bio, nullptr, nullptr, nullptr));
}

bool UseChain(SSL_CTX& context, const std::string& pem) {
  const auto bio = Open(pem);
  const Certificate own = ReadCertificate(*bio);
  if (own == nullptr || SSL_CTX_use_certificate(&context, own.get()) != 1) {
    return false;
  }
  while (const Certificate next = ReadCertificate(*bio)) {
    if (SSL_CTX_add1_chain_cert(&context, next.get()) != 1) {
      return false;
    }
  }
  return true;
}

bool UseKey(SSL_CTX& context, const std::string& pem) {
  const auto bio = Open(pem);
  const std::unique_ptr<EVP_PKEY, Free> key(
      PEM_read_bio_PrivateKey(bio.get(), nullptr, nullptr, nullptr)
  );
  return key != nullptr && SSL_CTX_use_PrivateKey(&context, key.get()) == 1;
}

bool RequireClients(SSL_CTX& context, const std::string& pem) {
  const auto bio = Open(pem);
  while (const Certificate authority = ReadCertificate(*bio)) {
    if (X509_STORE_add_cert(SSL_CTX_get_cert_store(&context), authority.get()) != 1 ||
        SSL_CTX_add_client_CA(&context, authority.get()) != 1) {
      return false;
    }
  }
  SSL_CTX_set_verify(&context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  // Sessions of clients with certificates may only be resumed within a context of this name.
  constexpr unsigned char kContextId = 1;
  SSL_CTX_set_session_id_context(&context, &kContextId, sizeof(kContextId));
  return true;
}

}  // namespace

StatusOr<std::shared_ptr<SSL_CTX>> MakeTlsContext(
    const TlsIdentity& identity, ClientCertificates client_certificates
) {
  std::shared_ptr<SSL_CTX> context(SSL_CTX_new(TLS_server_method()), SSL_CTX_free);
  const bool is_made =
      context != nullptr && SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION) == 1 &&
      UseChain(*context, identity.certificate_chain) && UseKey(*context, identity.private_key) &&
      (client_certificates == ClientCertificates::kIgnored ||
       RequireClients(*context, identity.client_ca));
  const std::string error = TakeOpensslError();  // reading past the last certificate leaves one
  if (!is_made) {
    return InvalidArgument("the certificate cannot be used: ", error);
  }
  SSL_CTX_set_mode(
      context.get(), SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER
  );
  return context;
}

}  // namespace switchyard
