#pragma once

#include <chrono>
#include <filesystem>
#include <string>

#include "base/status.h"

namespace switchyard {

// PEM files. Without a certificate there is no TLS; with a client_ca, clients need a certificate
// that one of its authorities signed.
struct TlsFiles {
  std::filesystem::path certificate;  // the server's, then those between it and the root
  std::filesystem::path key;          // of the first, without a passphrase
  std::filesystem::path client_ca;    // may be empty

  bool HasTls() const { return !certificate.empty() || !key.empty() || !client_ca.empty(); }
};

// What the files held when they fitted each other, and a summary of it for the log.
struct TlsIdentity {
  std::string certificate_chain;
  std::string private_key;
  std::string client_ca;  // empty: clients need no certificate
  std::string subject;
  std::chrono::system_clock::time_point valid_until;

  bool HasSameFiles(const TlsIdentity& other) const;
};

// Reads the files and checks that they are what they are said to be and that the key belongs to the
// certificate. NOT_FOUND or INVALID_ARGUMENT, naming the file and what to do. A certificate that
// has run out is taken: whoever reads it says so to more people than this can.
StatusOr<TlsIdentity> LoadTlsIdentity(const TlsFiles& files);

}  // namespace switchyard
