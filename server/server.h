#pragma once

#include <grpcpp/server.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/mutex.h"
#include "base/status.h"
#include "server/engine_watchdog.h"
#include "server/expert_service.h"
#include "server/http_server.h"
#include "server/inference_service.h"
#include "server/loaded_model.h"
#include "server/periodic_thread.h"
#include "server/serving_options.h"
#include "server/serving_state.h"

namespace switchyard {

struct ServerOptions {
  std::string listen_address =
      "0.0.0.0:50051";  // HOST:PORT, [IPV6]:PORT or unix:PATH; port 0: any that is free
  int32_t max_receive_message_bytes = 16 << 20;
  int32_t max_send_message_bytes = 64 << 20;
  // Clients may ping this often, also while nothing is sent; more often cuts their connection.
  // gRPC's own clients ping once a second at most.
  std::chrono::milliseconds min_ping_interval{500};
  HttpOptions http;
  ServingOptions serving;
};

// The gRPC server: inference, experts, health (grpc.health.v1) and reflection on one port. It
// listens from the start, so that probes get an answer, but says NOT_SERVING and refuses work until
// it has a model. Thread-safe.
class Server {
 public:
  // INVALID_ARGUMENT for an address that is none, FAILED_PRECONDITION when it cannot be listened
  // on.
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
  int port() const { return port_; }
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
  ServingState state_;
  InferenceService inference_service_;
  ExpertService expert_service_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> grpc_server_;
  std::atomic<bool> is_shut_down_ = false;

  Mutex health_mutex_;
  EngineWatchdog watchdog_ ABSL_GUARDED_BY(health_mutex_);
  std::optional<bool> told_serving_ ABSL_GUARDED_BY(health_mutex_);  // absent: nothing yet

  std::unique_ptr<HttpServer> http_server_;  // null without HTTP
  // Last, so that they end before what they use goes.
  std::optional<PeriodicThread> ticks_;
  std::optional<PeriodicThread> samples_;
};

}  // namespace switchyard
