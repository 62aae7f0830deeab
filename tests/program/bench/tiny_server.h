#pragma once

#include <memory>
#include <string>

#include "server/server.h"
#include "tests/support/temporary_folder.h"

namespace switchyard {

// The real server in this process with a tiny JetMoE model: a vocabulary of 61, a context of 2000,
// no tokenizer.
class TinyServer {
 public:
  explicit TinyServer(int32_t max_running = 8, int32_t max_queued = 1024);

  std::string address() const;
  const Engine& engine() const { return *engine_; }
  void Stop() { server_->Shutdown(std::chrono::milliseconds(0)); }

 private:
  TemporaryFolder folder_;
  std::unique_ptr<Server> server_;
  const Engine* engine_ = nullptr;
};

}  // namespace switchyard
