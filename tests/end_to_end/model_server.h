#pragma once

#include <grpcpp/channel.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "server/server.h"
#include "switchyard/v1/experts.grpc.pb.h"
#include "switchyard/v1/inference.grpc.pb.h"

namespace switchyard {

// The models that the tests go through: those of models/ and a tiny random one of each family, by
// name; the tiny ones on the CUDA backend, too.
std::vector<std::string> ModelNames();

// Steps and blocks so small that 16 requests share steps and their prompts are cut into chunks.
struct ModelServerOptions {
  int32_t threads = 2;
  EngineOptions engine = {
      .limits = {.max_step_tokens = 24, .block_tokens = 8}, .kv_cache_bytes = int64_t{32} << 20};
};

// The real server with a real model in this process, on free loopback ports; its metrics tell of
// every expert.
class ModelServer {
 public:
  // `name` is one of ModelNames().
  explicit ModelServer(const std::string& name, const ModelServerOptions& model_options = {});

  v1::InferenceService::Stub& inference() { return *inference_; }
  v1::ExpertService::Stub& experts() { return *experts_; }
  v1::ExpertService::Stub& admin_experts() { return *admin_experts_; }
  const v1::GetModelInfoResponse& info() const { return info_; }
  int http_port() const { return *server_->http_port(); }
  // The engine, to look at its load.
  const Engine& engine() const { return *engine_; }

 private:
  std::unique_ptr<Server> server_;
  const Engine* engine_ = nullptr;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::InferenceService::Stub> inference_;
  std::unique_ptr<v1::ExpertService::Stub> experts_;
  std::unique_ptr<v1::ExpertService::Stub> admin_experts_;
  v1::GetModelInfoResponse info_;
};

}  // namespace switchyard
