#include "server/serve.h"

#include <google/protobuf/stubs/logging.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <future>
#include <memory>
#include <optional>
#include <utility>

#include "base/log.h"
#include "base/status.h"
#include "server/connections/listening_sockets.h"
#include "server/experts/expert_metrics.h"
#include "server/process_signals.h"

namespace switchyard {
namespace {

// Returns it, too.
Status LogFailure(const char* event, const Status& status) {
  LogError("event={} error=\"{}\"", event, MessageOf(status));
  return status;
}

void LogReady(const v1::GetModelInfoResponse& info, int port) {
  LogInfo(
      "event=ready model={} family={} device={} port={} context_tokens={} kv_tokens_total={} "
      "weights_bytes={}",
      info.model(),
      info.family(),
      info.device(),
      port,
      info.context_tokens(),
      info.kv_tokens_total(),
      info.weights_bytes()
  );
}

StatusOr<std::unique_ptr<LoadedModel>> Load(const ServeOptions& options, const ModelLoader& load) {
  LogInfo("event=loading model_folder={}", options.model_folder.string());
  ASSIGN_OR_RETURN(std::unique_ptr<LoadedModel> model, load(options.model_folder, options.load));
  RETURN_IF_ERROR(CheckExpertSeries(model->info, options.server.serving.expert_metrics));
  return model;
}

// Loads, serves until the first signal, drains until the second or the timeout.
Status LoadAndServe(
    const ServeOptions& options,
    const ModelLoader& load,
    const BlockedSignals& blocked_signals,
    Server& server
) {
  std::promise<void> asked_to_stop;
  std::atomic<bool> is_loaded = false;
  const auto on_stop = [&](int count) {
    LogInfo("event=stopping signals={} drain_seconds={}", count, options.drain_timeout.count());
    if (!is_loaded) {
      // Loading cannot be interrupted, and there is nothing to drain yet.
      std::_Exit(EXIT_SUCCESS);
    }
    if (count == 1) {
      asked_to_stop.set_value();
    } else if (count == 2) {
      server.StopDraining();
    } else {
      // An engine that hangs in a step keeps the second from having an effect.
      std::_Exit(EXIT_FAILURE);
    }
  };
  const auto on_hangup = [&server] {
    server.ReloadFiles();
    LogInfo("event=files_looked_at signal=SIGHUP");
  };
  const SignalThread signals(blocked_signals, {.on_stop = on_stop, .on_hangup = on_hangup});

  StatusOr<std::unique_ptr<LoadedModel>> model = Load(options, load);
  if (!model.ok()) {
    return LogFailure("load_failed", model.status());
  }
  is_loaded = true;
  const v1::GetModelInfoResponse info = (*model)->info;
  server.SetReady(*std::move(model));
  LogReady(info, server.port());

  asked_to_stop.get_future().wait();
  server.Shutdown(options.drain_timeout);
  LogInfo("event=stopped");
  return OkStatus();
}

// Connections may take all files that the system allows but those that the server itself needs.
ServerOptions WithinFileLimit(ServerOptions options) {
  constexpr int64_t kOwnFiles = 256;
  const int64_t room = std::max<int64_t>(RaiseFileLimit() - kOwnFiles, 16);
  int32_t& most = options.connections.max_connections;
  if (most == 0 || most > room) {
    if (room < INT32_MAX) {
      LogWarning("event=connections_limited asked={} by_open_files={}", most, room);
    }
    most = static_cast<int32_t>(std::min<int64_t>(room, most == 0 ? INT32_MAX : most));
  }
  return options;
}

}  // namespace

Status RunServer(const ServeOptions& options, const ModelLoader& load) {
  // It would write a line of its own for each string of a client that is no UTF-8; the client gets
  // an error that says more.
  google::protobuf::SetLogHandler(nullptr);
  const BlockedSignals blocked_signals;
  StatusOr<std::unique_ptr<Server>> server = Server::Listen(WithinFileLimit(options.server));
  if (!server.ok()) {
    return LogFailure("listen_failed", server.status());
  }
  LogInfo("event=listening address={} port={}", options.server.listen_address, (*server)->port());
  if (const std::optional<int> port = (*server)->http_port()) {
    LogInfo("event=http_listening address={} port={}", options.server.http.listen_address, *port);
  }
  if (const std::optional<int> port = (*server)->admin_port()) {
    LogInfo("event=admin_listening address={} port={}", options.server.admin_address, *port);
  }
  return LoadAndServe(options, load, blocked_signals, **server);
}

}  // namespace switchyard
