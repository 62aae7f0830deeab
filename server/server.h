#pragma once

#include <grpcpp/server.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "base/status.h"
#include "server/expert_service.h"
#include "server/inference_service.h"
#include "server/loaded_model.h"
#include "server/serving_state.h"

namespace switchyard {

struct ServerOptions {
  std::string listen_address =
      "0.0.0.0:50051";  // HOST:PORT, [IPV6]:PORT or unix:PATH; port 0: any that is free
  int32_t max_receive_message_bytes = 16 << 20;
  int32_t max_send_message_bytes = 64 << 20;
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

  // 0 for a unix socket.
  int port() const { return port_; }

 private:
  Server();

  Status Start(const ServerOptions& options);
  void SetServing(bool serving);

  // Before what uses it, so that it goes last.
  ServingState state_;
  InferenceService inference_service_;
  ExpertService expert_service_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> grpc_server_;
  std::atomic<bool> is_shut_down_ = false;
};

}  // namespace switchyard
