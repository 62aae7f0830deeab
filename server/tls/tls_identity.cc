#include "server/tls/tls_identity.h"

#include <openssl/bio.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <ctime>
#include <memory>
#include <vector>

#include "server/access/small_file.h"
#include "server/tls/openssl_error.h"

namespace switchyard {
namespace {

constexpr int64_t kMaxPemBytes = 1 << 20;

struct Free {
  void operator()(BIO* bio) const { BIO_free(bio); }
  void operator()(X509* certificate) const { X509_free(certificate); }
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
};
using Certificate = std::unique_ptr<X509, Free>;
using Key = std::unique_ptr<EVP_PKEY, Free>;

std::unique_ptr<BIO, Free> Open(const std::string& text) {
  return std::unique_ptr<BIO, Free>(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

// OpenSSL's own would ask at the terminal.
int NoPassphrase(char* /*buffer*/, int /*bytes*/, int /*is_writing*/, void* /*data*/) {
  return -1;
}

StatusOr<std::vector<Certificate>> ReadCertificates(
    const std::string& text, const std::filesystem::path& path
) {
  std::vector<Certificate> certificates;
  const auto bio = Open(text);
  while (X509* const next = PEM_read_bio_X509(bio.get(), nullptr, NoPassphrase, nullptr)) {
    certificates.emplace_back(next);
  }
  const std::string error = TakeOpensslError();  // also after the last one: there is no other
  if (certificates.empty()) {
    return InvalidArgument(
        path.string(), ": has no certificate that can be read (", error, "); it must be a PEM file"
    );
  }
  // What is no certificate at the end was not read.
  size_t begins = 0;
  for (size_t at = text.find("-----BEGIN "); at != std::string::npos;
       at = text.find("-----BEGIN ", at + 1)) {
    ++begins;
  }
  if (begins != certificates.size()) {
    return InvalidArgument(
        path.string(),
        ": has ",
        begins,
        " PEM blocks, of which only the first ",
        certificates.size(),
        " are certificates that can be read (",
        error,
        ")"
    );
  }
  return certificates;
}

StatusOr<Key> ReadKey(const std::string& text, const std::filesystem::path& path) {
  const auto bio = Open(text);
  Key key(PEM_read_bio_PrivateKey(bio.get(), nullptr, NoPassphrase, nullptr));
  const std::string error = TakeOpensslError();
  if (key == nullptr) {
    return InvalidArgument(
        path.string(),
        ": has no private key that can be read (",
        error,
        "); it must be a PEM file without a passphrase"
    );
  }
  return key;
}

std::string SubjectOf(const X509& certificate) {
  std::unique_ptr<BIO, Free> text(BIO_new(BIO_s_mem()));
  X509_NAME_print_ex(text.get(), X509_get_subject_name(&certificate), 0, XN_FLAG_RFC2253);
  char* data = nullptr;
  const auto bytes = BIO_get_mem_data(text.get(), &data);
  return data == nullptr ? "" : std::string(data, static_cast<size_t>(bytes));
}

std::chrono::system_clock::time_point ValidUntil(const X509& certificate) {
  std::tm time = {};
  if (ASN1_TIME_to_tm(X509_get0_notAfter(&certificate), &time) != 1) {
    return {};
  }
  return std::chrono::system_clock::from_time_t(timegm(&time));
}

Status CheckNamesAreThere(const TlsFiles& files) {
  if (files.certificate.empty() || files.key.empty()) {
    return InvalidArgument(
        "TLS needs a certificate and its key: give --tls-certificate and --tls-key"
    );
  }
  return OkStatus();
}

}  // namespace

bool TlsIdentity::HasSameFiles(const TlsIdentity& other) const {
  return certificate_chain == other.certificate_chain && private_key == other.private_key &&
         client_ca == other.client_ca;
}

StatusOr<TlsIdentity> LoadTlsIdentity(const TlsFiles& files) {
  RETURN_IF_ERROR(CheckNamesAreThere(files));
  TlsIdentity identity;
  ASSIGN_OR_RETURN(identity.certificate_chain, ReadSmallFile(files.certificate, kMaxPemBytes));
  ASSIGN_OR_RETURN(identity.private_key, ReadSmallFile(files.key, kMaxPemBytes));
  ASSIGN_OR_RETURN(
      const std::vector<Certificate> chain,
      ReadCertificates(identity.certificate_chain, files.certificate)
  );
  ASSIGN_OR_RETURN(const Key key, ReadKey(identity.private_key, files.key));
  if (X509_check_private_key(chain.front().get(), key.get()) != 1) {
    TakeOpensslError();
    return InvalidArgument(
        files.key.string(),
        ": is not the key of the first certificate in ",
        files.certificate.string(),
        "; the server's own comes first"
    );
  }
  if (!files.client_ca.empty()) {
    ASSIGN_OR_RETURN(identity.client_ca, ReadSmallFile(files.client_ca, kMaxPemBytes));
    RETURN_IF_ERROR(ReadCertificates(identity.client_ca, files.client_ca).status());
  }
  identity.subject = SubjectOf(*chain.front());
  identity.valid_until = ValidUntil(*chain.front());
  return identity;
}

}  // namespace switchyard
