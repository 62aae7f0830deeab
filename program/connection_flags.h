#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "base/status.h"
#include "clients/cpp/client.h"

namespace switchyard {

// How a command reaches a server: what its flags say.
struct ConnectionFlags {
  std::string server;
  bool tls = false;
  std::string tls_ca;
  std::string tls_certificate;
  std::string tls_key;
  std::string tls_server_name;
  std::string api_key_file;
};

// All but --server, which each command explains in its own way.
void AddConnectionFlags(CLI::App& command, ConnectionFlags& flags);

// Reads the files that the flags name. NOT_FOUND or INVALID_ARGUMENT, naming the file.
StatusOr<ClientOptions> ReadConnectionFlags(const ConnectionFlags& flags);

}  // namespace switchyard
