#include "server/server.h"

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/health_check_service_interface.h>

#include <algorithm>
#include <string>
#include <utility>

#include "base/log.h"

namespace switchyard {
namespace {

// How long the last answers may take to reach their clients after the engine has stopped.
constexpr std::chrono::milliseconds kLastWritesTime{1000};

// How often expert counts are copied for sliding windows.
constexpr std::chrono::milliseconds kSamplePause{1000};

// How often certificates and keys are looked at.
constexpr std::chrono::milliseconds kReloadPause{1000};

ServingOptions ServingOf(const ServerOptions& options) {
  ServingOptions serving = options.serving;
  serving.max_answer_bytes = options.connections.max_send_message_bytes;
  return serving;
}

// Timeouts are kept to within a quarter of them.
std::chrono::milliseconds TickPause(const ServingOptions& options) {
  constexpr std::chrono::milliseconds kShortest{10};
  std::chrono::milliseconds pause{1000};
  for (const std::chrono::milliseconds timeout : {options.stall_timeout, options.step_timeout}) {
    if (timeout.count() > 0) {
      pause = std::min(pause, timeout / 4);
    }
  }
  return std::max(pause, kShortest);
}

}  // namespace

Server::Server(const ServerOptions& options)
    : state_(ServingOf(options)),
      inference_service_(state_),
      expert_service_(state_),
      admin_expert_service_(state_, Door::kAdmin),
      watchdog_(options.serving.step_timeout) {}

Server::~Server() {
  Shutdown(std::chrono::milliseconds(0));
}

StatusOr<std::unique_ptr<Server>> Server::Listen(const ServerOptions& options) {
  ServerOptions opened = options;
  if (!options.api_keys.empty()) {
    ASSIGN_OR_RETURN(opened.serving.access, AccessControl::Open(options.api_keys));
  }
  std::unique_ptr<Server> server(new Server(opened));
  if (options.tls.HasTls()) {
    ASSIGN_OR_RETURN(server->tls_, TlsStore::Open(options.tls));
  }
  RETURN_IF_ERROR(server->Start(opened));
  return server;
}

Status Server::Start(const ServerOptions& options) {
  // Process-wide switches of gRPC, both meant to be set before a server is built.
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();

  ASSIGN_OR_RETURN(
      listener_,
      GrpcListener::Listen(
          options.listen_address,
          options.connections,
          tls_.get(),
          {&inference_service_, &expert_service_}
      )
  );
  if (!options.admin_address.empty()) {
    ASSIGN_OR_RETURN(
        admin_listener_,
        GrpcListener::Listen(
            options.admin_address, options.connections, tls_.get(), {&admin_expert_service_}
        )
    );
  }
  // gRPC's health service begins with SERVING for the empty name.
  UpdateHealth();
  if (!options.http.listen_address.empty()) {
    ASSIGN_OR_RETURN(http_server_, HttpServer::Listen(options.http, state_, tls_.get()));
  }
  ticks_.emplace(TickPause(options.serving), [this] { Tick(); });
  samples_.emplace(kSamplePause, [this] { SampleExperts(); });
  reloads_.emplace(kReloadPause, [this] { ReloadFiles(); });
  return OkStatus();
}

void Server::UpdateHealth() {
  const MutexLock lock(health_mutex_);
  const bool serving = state_.IsServing();
  if (told_serving_ == serving) {
    return;
  }
  told_serving_ = serving;
  for (GrpcListener* const listener : {listener_.get(), admin_listener_.get()}) {
    if (listener == nullptr) {
      continue;
    }
    grpc::HealthCheckServiceInterface* const health = listener->server().GetHealthCheckService();
    for (const char* name :
         {"", v1::InferenceService::service_full_name(), v1::ExpertService::service_full_name()}) {
      health->SetServingStatus(name, serving);
    }
  }
}

void Server::SampleExperts() {
  LoadedModel* const model = state_.ModelOrNull();
  if (model == nullptr) {
    return;
  }
  if (const Status status = state_.experts().Sample(*model->engine); !status.ok()) {
    LogDebug("event=expert_sample_missing reason=\"{}\"", MessageOf(status));
  }
}

void Server::ReloadFiles() {
  if (tls_ != nullptr) {
    tls_->Reload();
  }
  if (AccessControl* const access = state_.options().access.get()) {
    access->Reload();
  }
}

void Server::SetReady(std::unique_ptr<LoadedModel> model) {
  state_.SetModel(std::move(model));
  UpdateHealth();
}

void Server::Tick() {
  state_.streams().Tick(state_.options().now());
  WatchEngine();
  UpdateHealth();
}

void Server::WatchEngine() {
  const LoadedModel* const model = state_.ModelOrNull();
  if (model == nullptr) {
    return;
  }
  const EngineLoad load = model->engine->Load();
  const MutexLock lock(health_mutex_);
  const bool hangs = watchdog_.IsHanging(load, state_.options().now());
  if (hangs && !state_.EngineHangs()) {
    LogError(
        "event=engine_hangs step_timeout_seconds={:.3f} running={} waiting={}",
        std::chrono::duration<double>(state_.options().step_timeout).count(),
        load.running_requests,
        load.waiting_requests
    );
  } else if (!hangs && state_.EngineHangs()) {
    LogInfo("event=engine_moves_again");
  }
  state_.SetEngineHealth(hangs, watchdog_.well_at());
}

void Server::Shutdown(std::chrono::milliseconds drain) {
  if (listener_ == nullptr || is_shut_down_.exchange(true)) {
    return;
  }
  const Clock::time_point deadline = Clock::now() + drain;
  state_.StartDraining();
  UpdateHealth();
  const int32_t left = state_.streams().WaitUntilNone(deadline);
  LogInfo("event=drained streams_left={}", left);
  if (LoadedModel* const model = state_.ModelOrNull()) {
    model->engine->Stop(Clock::now());
  }
  const auto last_writes_end = std::chrono::system_clock::now() + kLastWritesTime;
  if (admin_listener_ != nullptr) {
    admin_listener_->Shutdown(last_writes_end);
  }
  listener_->Shutdown(last_writes_end);
}

void Server::StopDraining() {
  state_.streams().StopWaiting();
}

}  // namespace switchyard
