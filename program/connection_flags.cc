#include "program/connection_flags.h"

#include "server/access/api_key.h"
#include "server/access/small_file.h"

namespace switchyard {
namespace {

constexpr char kGroup[] = "Connection";
constexpr int64_t kMaxFileBytes = 1 << 20;

StatusOr<std::string> ReadIfNamed(const std::string& path) {
  return path.empty() ? StatusOr<std::string>("") : ReadSmallFile(path, kMaxFileBytes);
}

StatusOr<std::string> ReadKey(const std::string& path) {
  ASSIGN_OR_RETURN(std::string key, ReadIfNamed(path));
  key.erase(key.find_last_not_of(" \r\n\t") + 1);
  if (!path.empty() && !HasKeyForm(key)) {
    return InvalidArgument(
        path, ": has no API key, which is sy_ and 43 letters; `switchyard api-key` makes one"
    );
  }
  return key;
}

}  // namespace

void AddConnectionFlags(CLI::App& command, ConnectionFlags& flags) {
  command
      .add_flag("--tls", flags.tls, "Use TLS, and believe the authorities that this system does")
      ->group(kGroup);
  command.add_option("--tls-ca", flags.tls_ca, "Use TLS, and believe these authorities only")
      ->type_name("PEM")
      ->group(kGroup);
  CLI::Option* const certificate =
      command
          .add_option(
              "--tls-certificate",
              flags.tls_certificate,
              "Use TLS, with this certificate for servers that ask for one"
          )
          ->type_name("PEM")
          ->group(kGroup);
  CLI::Option* const key =
      command.add_option("--tls-key", flags.tls_key, "The key of --tls-certificate")
          ->type_name("PEM")
          ->group(kGroup);
  certificate->needs(key);
  key->needs(certificate);
  command
      .add_option(
          "--tls-server-name",
          flags.tls_server_name,
          "Name that the server's certificate must have, if not the host's"
      )
      ->type_name("NAME")
      ->group(kGroup);
  command
      .add_option(
          "--api-key-file", flags.api_key_file, "File with the API key, for servers that want one"
      )
      ->type_name("FILE")
      ->group(kGroup);
}

StatusOr<ClientOptions> ReadConnectionFlags(const ConnectionFlags& flags) {
  ClientOptions options;
  ASSIGN_OR_RETURN(options.api_key, ReadKey(flags.api_key_file));
  if (!flags.tls && flags.tls_ca.empty() && flags.tls_certificate.empty()) {
    return options;
  }
  ClientTls& tls = options.tls.emplace();
  ASSIGN_OR_RETURN(tls.certificate_authorities, ReadIfNamed(flags.tls_ca));
  ASSIGN_OR_RETURN(tls.certificate, ReadIfNamed(flags.tls_certificate));
  ASSIGN_OR_RETURN(tls.key, ReadIfNamed(flags.tls_key));
  tls.server_name = flags.tls_server_name;
  return options;
}

}  // namespace switchyard
