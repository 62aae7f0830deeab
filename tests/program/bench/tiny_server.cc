#include "tests/program/bench/tiny_server.h"

#include <utility>

#include "base/check.h"
#include "tests/support/tiny_model.h"

namespace switchyard {

TinyServer::TinyServer(int32_t max_running, int32_t max_queued) {
  ServerOptions options;
  options.listen_address = "127.0.0.1:0";
  StatusOr<std::unique_ptr<Server>> server = Server::Listen(options);
  CHECK(server.ok()) << server.status();
  server_ = *std::move(server);
  const Status written = WriteTinyJetMoe(folder_.path(), {.context_tokens = 2000});
  CHECK(written.ok()) << written;
  LoadOptions load;
  load.name = "tiny";
  load.backend.threads = 1;
  load.engine.kv_cache_bytes = 4 << 20;
  load.engine.max_queued_requests = max_queued;
  load.engine.limits.max_running = max_running;
  StatusOr<std::unique_ptr<LoadedModel>> model = LoadModel(folder_.path(), load);
  CHECK(model.ok()) << model.status();
  engine_ = (*model)->engine.get();
  server_->SetReady(*std::move(model));
}

std::string TinyServer::address() const {
  return Concat("127.0.0.1:", server_->port());
}

}  // namespace switchyard
