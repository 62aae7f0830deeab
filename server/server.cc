#include "server/server.h"

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server_builder.h>

#include <algorithm>
#include <string>
#include <utility>

#include "base/log.h"
#include "server/listen_address.h"

namespace switchyard {
namespace {

// How long the last answers may take to reach their clients after the engine has stopped.
constexpr std::chrono::milliseconds kLastWritesTime{1000};

// How often expert counts are copied for sliding windows.
constexpr std::chrono::milliseconds kSamplePause{1000};

// gRPC takes an address without a port for one with port 443, which nobody means.
Status CheckAddress(const std::string& address) {
  const bool is_unix = address.rfind("unix:", 0) == 0 && address.size() > 5;
  return is_unix ? OkStatus() : ParseHostAndPort(address).status();
}

void SetLimits(const ServerOptions& options, grpc::ServerBuilder& builder) {
  builder.SetMaxReceiveMessageSize(options.max_receive_message_bytes);
  builder.SetMaxSendMessageSize(options.max_send_message_bytes);
  // Two servers on one port would share its clients at random: the second must fail.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
}

// A long quiet stream is normal: a request may wait in the queue. So clients may ping often, and
// the server finds out itself that a client's machine is gone.
void SetKeepalive(const ServerOptions& options, grpc::ServerBuilder& builder) {
  builder.AddChannelArgument(
      GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
      static_cast<int>(options.min_ping_interval.count())
  );
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 60'000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 20'000);
}

ServingOptions ServingOf(const ServerOptions& options) {
  ServingOptions serving = options.serving;
  serving.max_answer_bytes = options.max_send_message_bytes;
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
      watchdog_(options.serving.step_timeout) {}

Server::~Server() {
  Shutdown(std::chrono::milliseconds(0));
}

StatusOr<std::unique_ptr<Server>> Server::Listen(const ServerOptions& options) {
  std::unique_ptr<Server> server(new Server(options));
  RETURN_IF_ERROR(server->Start(options));
  return server;
}

Status Server::Start(const ServerOptions& options) {
  RETURN_IF_ERROR(CheckAddress(options.listen_address));
  // Process-wide switches of gRPC, both meant to be set before a server is built.
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();

  grpc::ServerBuilder builder;
  builder.AddListeningPort(options.listen_address, grpc::InsecureServerCredentials(), &port_);
  builder.RegisterService(&inference_service_);
  builder.RegisterService(&expert_service_);
  SetLimits(options, builder);
  SetKeepalive(options, builder);
  grpc_server_ = builder.BuildAndStart();
  if (grpc_server_ == nullptr) {
    return FailedPrecondition(
        "cannot listen on \"",
        options.listen_address,
        "\": another process has the port, or this machine has no such address; choose another"
    );
  }
  // gRPC's health service begins with SERVING for the empty name.
  UpdateHealth();
  if (!options.http.listen_address.empty()) {
    ASSIGN_OR_RETURN(http_server_, HttpServer::Listen(options.http, state_));
  }
  ticks_.emplace(TickPause(options.serving), [this] { Tick(); });
  samples_.emplace(kSamplePause, [this] { SampleExperts(); });
  return OkStatus();
}

void Server::UpdateHealth() {
  const MutexLock lock(health_mutex_);
  const bool serving = state_.IsServing();
  if (told_serving_ == serving) {
    return;
  }
  told_serving_ = serving;
  grpc::HealthCheckServiceInterface* const health = grpc_server_->GetHealthCheckService();
  for (const char* name :
       {"", v1::InferenceService::service_full_name(), v1::ExpertService::service_full_name()}) {
    health->SetServingStatus(name, serving);
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
  if (grpc_server_ == nullptr || is_shut_down_.exchange(true)) {
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
  grpc_server_->Shutdown(std::chrono::system_clock::now() + kLastWritesTime);
  grpc_server_->Wait();
}

void Server::StopDraining() {
  state_.streams().StopWaiting();
}

}  // namespace switchyard
