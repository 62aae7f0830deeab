#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>

#include "server/serve.h"

namespace switchyard {

// Who may use `serve` and over which connections: the flags with their defaults, as parsed.
struct ServeSecurityFlags {
  std::string tls_certificate;
  std::string tls_key;
  std::string tls_client_ca;
  std::string api_keys;
  std::string admin_address;
  HttpTls http_tls = HttpTls::kAsGrpc;
  HttpOpen http_open = HttpOpen::kProbes;
  ConnectionLimits connections;
  int32_t idle_timeout_seconds = 600;
  int32_t handshake_timeout_seconds = 10;
  int32_t max_streams_per_peer = 0;
  int32_t max_streams_per_host = 0;
};

void AddSecurityFlags(CLI::App& command, ServeSecurityFlags& flags);

// After ApplyLimits. Requires: the flags were parsed, which checks their values.
void ApplySecurity(const ServeSecurityFlags& flags, ServeOptions& options);

}  // namespace switchyard
