#include "tests/end_to_end/model_server.h"

#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>

#include <algorithm>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/check.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tiny_model.h"

namespace switchyard {
namespace {

constexpr char kTinyJetMoe[] = "tiny_jetmoe";
constexpr char kTinySwitchHead[] = "tiny_switchhead";
constexpr std::string_view kOnCuda = "_on_" SWITCHYARD_TEST_CUDA;

const std::filesystem::path kModels = std::filesystem::path(SWITCHYARD_SOURCE_DIR) / "models";

StatusOr<std::unique_ptr<LoadedModel>> Load(std::string name, const ModelServerOptions& server) {
  LoadOptions options;
  options.name = name;
  options.backend.device = "cpu";
  if (name.ends_with(kOnCuda)) {
    options.backend.device = "cuda";
    name.resize(name.size() - kOnCuda.size());
  }
  options.backend.threads = server.threads;
  options.engine = server.engine;
  const TemporaryFolder folder;
  const TinyModelOptions tiny{.context_tokens = 4096};
  if (name == kTinyJetMoe) {
    RETURN_IF_ERROR(WriteTinyJetMoe(folder.path(), tiny));
    return LoadModel(folder.path(), options);
  }
  if (name == kTinySwitchHead) {
    RETURN_IF_ERROR(WriteTinySwitchHead(folder.path(), tiny));
    return LoadModel(folder.path(), options);
  }
  return LoadModel(kModels / name, options);
}

}  // namespace

std::vector<std::string> ModelNames() {
  std::vector<std::string> names = {kTinyJetMoe, kTinySwitchHead};
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(kModels, error)) {
    if (std::filesystem::exists(entry.path() / "config.json", error)) {
      names.push_back(entry.path().filename().string());
    }
  }
  for (const char* tiny : {kTinyJetMoe, kTinySwitchHead}) {
    names.push_back(Concat(tiny, kOnCuda));
  }
  std::sort(names.begin(), names.end());
  return names;
}

ModelServer::ModelServer(const std::string& name, const ModelServerOptions& model_options) {
  ServerOptions options;
  options.listen_address = "127.0.0.1:0";
  options.admin_address = "127.0.0.1:0";
  options.http.listen_address = "127.0.0.1:0";
  options.serving.expert_metrics.level = ExpertMetricsLevel::kFull;
  StatusOr<std::unique_ptr<Server>> server = Server::Listen(options);
  CHECK(server.ok()) << server.status();
  server_ = *std::move(server);
  StatusOr<std::unique_ptr<LoadedModel>> model = Load(name, model_options);
  CHECK(model.ok()) << model.status();
  engine_ = (*model)->engine.get();
  server_->SetReady(*std::move(model));

  channel_ = grpc::CreateChannel(
      Concat("127.0.0.1:", server_->port()), grpc::InsecureChannelCredentials()
  );
  inference_ = v1::InferenceService::NewStub(channel_);
  experts_ = v1::ExpertService::NewStub(channel_);
  admin_experts_ = v1::ExpertService::NewStub(grpc::CreateChannel(
      Concat("127.0.0.1:", *server_->admin_port()), grpc::InsecureChannelCredentials()
  ));
  grpc::ClientContext context;
  const grpc::Status status = inference_->GetModelInfo(&context, {}, &info_);
  CHECK(status.ok()) << status.error_message();
}

}  // namespace switchyard
