#include "program/serve_security_flags.h"

#include <chrono>
#include <map>

namespace switchyard {
namespace {

void AddAccessFlags(CLI::App& command, ServeSecurityFlags& flags) {
  CLI::Option* const certificate =
      command
          .add_option(
              "--tls-certificate",
              flags.tls_certificate,
              "Serve over TLS, with this certificate and those between it and its root"
          )
          ->type_name("PEM");
  CLI::Option* const key =
      command.add_option("--tls-key", flags.tls_key, "Its key, without a passphrase")
          ->type_name("PEM");
  certificate->needs(key);
  key->needs(certificate);
  command
      .add_option(
          "--tls-client-ca",
          flags.tls_client_ca,
          "Take only clients whose certificate one of these authorities signed"
      )
      ->type_name("PEM")
      ->needs(certificate);
  command
      .add_option(
          "--api-keys",
          flags.api_keys,
          "Take only calls with a key of this file, within its limits; `switchyard api-key` makes "
          "one"
      )
      ->type_name("FILE");
  command
      .add_option(
          "--admin-listen",
          flags.admin_address,
          "HOST:PORT for calls that change what everybody sees; they are answered nowhere when "
          "absent"
      )
      ->type_name("ADDRESS");
}

void AddHttpFlags(CLI::App& command, ServeSecurityFlags& flags) {
  const std::map<std::string, HttpTls> tls = {
      {"as-grpc", HttpTls::kAsGrpc}, {"server", HttpTls::kServerOnly}, {"off", HttpTls::kOff}};
  command
      .add_option(
          "--http-tls",
          flags.http_tls,
          "TLS of --http: as for gRPC, without certificates of clients, or none"
      )
      ->transform(CLI::CheckedTransformer(tls))
      ->option_text("as-grpc|server|off [as-grpc]");
  const std::map<std::string, HttpOpen> open = {
      {"probes", HttpOpen::kProbes}, {"metrics", HttpOpen::kMetrics}, {"all", HttpOpen::kAll}};
  command
      .add_option(
          "--http-open",
          flags.http_open,
          "What of --http needs no API key: / without its numbers, /healthz and /readyz; /metrics "
          "too; "
          "or everything"
      )
      ->transform(CLI::CheckedTransformer(open))
      ->option_text("probes|metrics|all [probes]");
}

void AddStreamLimitFlags(CLI::App& command, ServeSecurityFlags& flags) {
  command
      .add_option(
          "--max-streams-per-connection",
          flags.connections.max_streams_per_connection,
          "Calls that one connection may have open; more wait in the client"
      )
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  command
      .add_option(
          "--max-streams-per-peer",
          flags.max_streams_per_peer,
          "Generations that one API key, or one host without keys, may have open; 0: any number"
      )
      ->check(CLI::Range(0, 1 << 20))
      ->capture_default_str();
  command
      .add_option(
          "--max-streams-per-host",
          flags.max_streams_per_host,
          "Calls of any kind that one host may have open, over all its connections; 0: any number"
      )
      ->check(CLI::Range(0, 1 << 24))
      ->capture_default_str();
}

void AddConnectionLimitFlags(CLI::App& command, ServeSecurityFlags& flags) {
  ConnectionLimits& limits = flags.connections;
  command
      .add_option(
          "--max-connections",
          limits.max_connections,
          "Connections of an address; others are closed at once; 0: as many as files may be open"
      )
      ->check(CLI::Range(0, 1 << 24))
      ->capture_default_str();
  command
      .add_option(
          "--max-connections-per-host",
          limits.max_connections_per_host,
          "Of one host; 0: any number"
      )
      ->check(CLI::Range(0, 1 << 24))
      ->capture_default_str();
  command
      .add_option("--max-metadata-bytes", limits.max_metadata_bytes, "Metadata (headers) of a call")
      ->check(CLI::Range(1024, 1 << 20))
      ->capture_default_str();
  command
      .add_option(
          "--idle-timeout",
          flags.idle_timeout_seconds,
          "A connection without calls is closed after so long; clients open another"
      )
      ->type_name("SECONDS")
      ->check(CLI::Range(1, 86400))
      ->capture_default_str();
  command
      .add_option(
          "--handshake-timeout",
          flags.handshake_timeout_seconds,
          "How long a client may take for TLS and its first frame"
      )
      ->type_name("SECONDS")
      ->check(CLI::Range(1, 3600))
      ->capture_default_str();
}

}  // namespace

void AddSecurityFlags(CLI::App& command, ServeSecurityFlags& flags) {
  AddAccessFlags(command, flags);
  AddHttpFlags(command, flags);
  AddConnectionLimitFlags(command, flags);
  AddStreamLimitFlags(command, flags);
}

void ApplySecurity(const ServeSecurityFlags& flags, ServeOptions& options) {
  ServerOptions& server = options.server;
  server.tls = {
      .certificate = flags.tls_certificate, .key = flags.tls_key, .client_ca = flags.tls_client_ca};
  server.api_keys = flags.api_keys;
  server.admin_address = flags.admin_address;
  server.http.tls = flags.http_tls;
  server.http.open = flags.http_open;
  const int32_t max_receive_message_bytes = server.connections.max_receive_message_bytes;
  server.connections = flags.connections;
  server.connections.max_receive_message_bytes = max_receive_message_bytes;
  server.connections.idle_timeout = std::chrono::seconds(flags.idle_timeout_seconds);
  server.connections.handshake_timeout = std::chrono::seconds(flags.handshake_timeout_seconds);
  server.serving.max_streams_per_peer = flags.max_streams_per_peer;
  server.serving.max_streams_per_host = flags.max_streams_per_host;
}

}  // namespace switchyard
