#pragma once

#include <filesystem>
#include <string>

namespace switchyard {

// Certificates for tests, made on the spot with the openssl command, so that none runs out.
class TestCertificates {
 public:
  // Makes an authority of this name in `folder`, which must outlive this: NAME.pem, NAME.key.
  TestCertificates(std::filesystem::path folder, const std::string& name);

  // Makes SUBJECT.pem and SUBJECT.key, signed by the authority, for the names localhost and
  // 127.0.0.1.
  void Issue(const std::string& subject) const;

  std::filesystem::path Certificate(const std::string& subject) const;
  std::filesystem::path Key(const std::string& subject) const;
  std::filesystem::path Authority() const { return Certificate(name_); }

 private:
  void Run(const std::string& command) const;

  const std::filesystem::path folder_;
  const std::string name_;
};

}  // namespace switchyard
