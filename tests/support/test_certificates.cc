#include "tests/support/test_certificates.h"

#include <cstdlib>
#include <utility>

#include "base/check.h"
#include "base/status.h"

namespace switchyard {

TestCertificates::TestCertificates(std::filesystem::path folder, const std::string& name)
    : folder_(std::move(folder)), name_(name) {
  Run(Concat(
      "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=",
      name_,
      " -keyout ",
      name_,
      ".key -out ",
      name_,
      ".pem"
  ));
}

void TestCertificates::Issue(const std::string& subject) const {
  Run(Concat(
      "openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=",
      subject,
      " -keyout ",
      subject,
      ".key -out ",
      subject,
      ".csr"
  ));
  Run(Concat(
      "printf 'subjectAltName=DNS:localhost,IP:127.0.0.1' > ",
      subject,
      ".ext && openssl x509 -req -days 2 -in ",
      subject,
      ".csr -CA ",
      name_,
      ".pem -CAkey ",
      name_,
      ".key -CAcreateserial -extfile ",
      subject,
      ".ext -out ",
      subject,
      ".pem"
  ));
}

std::filesystem::path TestCertificates::Certificate(const std::string& subject) const {
  return folder_ / (subject + ".pem");
}

std::filesystem::path TestCertificates::Key(const std::string& subject) const {
  return folder_ / (subject + ".key");
}

void TestCertificates::Run(const std::string& command) const {
  const std::string line =
      Concat("cd '", folder_.string(), "' && { ", command, "; } 2>openssl.log");
  CHECK(std::system(line.c_str()) == 0) << line;
}

}  // namespace switchyard
