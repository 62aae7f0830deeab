#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "base/mutex.h"
#include "base/status.h"
#include "server/connections/grpc_listener.h"
#include "server/engine_watchdog.h"
#include "server/experts/expert_service.h"
#include "server/http/http_server.h"
#include "server/inference_service.h"
#include "server/loaded_model.h"
#include "server/periodic_thread.h"
#include "server/serving_options.h"
#include "server/serving_state.h"
#include "server/tls/tls_store.h"

namespace switchyard {

struct ServerOptions {
  std::string listen_address =
      "0.0.0.0:50051";  // HOST:PORT, [IPV6]:PORT or unix:PATH; port 0: any that is free
  // Likewise, for administrators: ExpertService with ResetExpertWindow and ProfileExperts. Empty:
  // nowhere.
  std::string admin_address;
  ConnectionLimits connections;    // of either address
  TlsFiles tls;                    // of all addresses; followed while they change
  std::filesystem::path api_keys;  // followed, too; empty: no call needs a key
  HttpOptions http;
  ServingOptions serving;
};

// The gRPC server: inference, experts, health (grpc.health.v1) and reflection on one port; what is
// for administrators on another. It
// listens from the start, so that probes get an answer, but says NOT_SERVING and refuses work until
// it has a model. Thread-safe.
class Server {
 public:
  // INVALID_ARGUMENT for an address that is none, FAILED_PRECONDITION when it cannot be listened
  // on; what is wrong with a certificate or a file of keys.
  static StatusOr<std::unique_ptr<Server>> Listen(const ServerOptions& options);
  // Shuts down at once if that has not been done.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Begins to serve: `model` is loaded and warmed up. Requires: called once.
  void SetReady(std::unique_ptr<LoadedModel> model);

  // NOT_SERVING, no new generations, then up to `drain` for those that run; what is left then ends
  // with UNAVAILABLE. Blocks until all is over. A second call does nothing.
  void Shutdown(std::chrono::milliseconds drain);
  // Makes a Shutdown that drains go on at once.
  void StopDraining();

  // Ends streams whose client does not read and looks after the engine. A thread of the server's
  // does it several times in the shorter of the two timeouts, and at least each second.
  void Tick();

  // 0 for a unix socket.
  int port() const { return listener_->port(); }
  // Absent without an admin address.
  std::optional<int> admin_port() const {
    return admin_listener_ ? std::optional<int>(admin_listener_->port()) : std::nullopt;
  }
  // Looks for new certificates and keys. A thread of the server's does it each second.
  void ReloadFiles();

  // Absent without HTTP.
  std::optional<int> http_port() const {
    return http_server_ ? std::optional<int>(http_server_->port()) : std::nullopt;
  }

 private:
  explicit Server(const ServerOptions& options);

  Status Start(const ServerOptions& options);
  // Tells the health service, when it changed, whether there is a model, an engine that moves and
  // no end in sight.
  void UpdateHealth();
  void WatchEngine();
  void SampleExperts();

  // Before what uses it, so that it goes last.
  std::unique_ptr<TlsStore> tls_;  // null: plaintext
  ServingState state_;
  InferenceService inference_service_;
  ExpertService expert_service_;
  ExpertService admin_expert_service_;
  std::unique_ptr<GrpcListener> listener_;
  std::unique_ptr<GrpcListener> admin_listener_;  // null without one
  std::atomic<bool> is_shut_down_ = false;

  Mutex health_mutex_;
  EngineWatchdog watchdog_ ABSL_GUARDED_BY(health_mutex_);
  std::optional<bool> told_serving_ ABSL_GUARDED_BY(health_mutex_);  // absent: nothing yet

  std::unique_ptr<HttpServer> http_server_;  // null without HTTP
  // Last, so that they end before what they use goes.
  std::optional<PeriodicThread> ticks_;
  std::optional<PeriodicThread> samples_;
  std::optional<PeriodicThread> reloads_;
};

}  // namespace switchyard
