#include "tests/server/running_server.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace switchyard {
namespace {

ServerOptions OnAnyLoopbackPort() {
  ServerOptions options;
  options.listen_address = "127.0.0.1:0";
  options.admin_address = "127.0.0.1:0";
  return options;
}

void Append(const v1::Delta& delta, std::vector<v1::Completion>& completions) {
  const auto index = static_cast<size_t>(delta.completion());
  completions.resize(std::max(completions.size(), index + 1));
  completions[index].mutable_text()->append(delta.text());
  completions[index].mutable_token_ids()->MergeFrom(delta.token_ids());
  completions[index].mutable_logprobs()->MergeFrom(delta.logprobs());
}

}  // namespace

std::unique_ptr<LoadedModel> MakeFakeModel(
    std::vector<int32_t> script, std::vector<std::string> pieces
) {
  auto model = std::make_unique<LoadedModel>();
  model->name = "fake";
  model->vocabulary_size = 300;
  model->context_tokens = 64;
  model->defaults.max_tokens = 16;
  model->defaults.sampling.temperature = 0.75F;
  model->eos_token_ids = {FakeTokenizer::kEos};
  model->info.set_model("fake");
  model->tokenizer = std::make_unique<FakeTokenizer>(std::move(pieces));
  model->engine = std::make_unique<FakeEngine>(std::move(script));
  return model;
}

RunningServer::RunningServer() : RunningServer(OnAnyLoopbackPort()) {}

RunningServer::RunningServer(const ServerOptions& options) {
  StatusOr<std::unique_ptr<Server>> server = Server::Listen(options);
  CHECK(server.ok()) << server.status();
  server_ = *std::move(server);
  channel_ = grpc::CreateChannel(
      Concat("127.0.0.1:", server_->port()), grpc::InsecureChannelCredentials()
  );
  inference_ = v1::InferenceService::NewStub(channel_);
  experts_ = v1::ExpertService::NewStub(channel_);
}

std::unique_ptr<v1::ExpertService::Stub> RunningServer::AdminExperts() const {
  return v1::ExpertService::NewStub(grpc::CreateChannel(
      Concat("127.0.0.1:", *server_->admin_port()), grpc::InsecureChannelCredentials()
  ));
}

FakeEngine& RunningServer::SetReady(std::vector<int32_t> script, std::vector<std::string> pieces) {
  std::unique_ptr<LoadedModel> model = MakeFakeModel(std::move(script), std::move(pieces));
  auto& engine = static_cast<FakeEngine&>(*model->engine);
  server_->SetReady(std::move(model));
  return engine;
}

Stream ReadStream(grpc::ClientReader<v1::GenerateResponse>& reader) {
  Stream stream;
  v1::GenerateResponse response;
  while (reader.Read(&response)) {
    if (response.has_finished()) {
      stream.finished.push_back(response.finished());
      continue;
    }
    const auto& scored = response.prompt_logprobs().tokens();
    stream.prompt_logprobs.insert(stream.prompt_logprobs.end(), scored.begin(), scored.end());
    if (!response.has_delta()) {
      continue;
    }
    const v1::Delta& delta = response.delta();
    Append(delta, stream.completions);
    ++stream.deltas;
    stream.text += delta.text();
    stream.token_ids.insert(
        stream.token_ids.end(), delta.token_ids().begin(), delta.token_ids().end()
    );
    stream.logprobs.insert(stream.logprobs.end(), delta.logprobs().begin(), delta.logprobs().end());
  }
  stream.status = reader.Finish();
  return stream;
}

Stream Generate(v1::InferenceService::Stub& stub, const v1::GenerateRequest& request) {
  grpc::ClientContext context;
  const auto reader = stub.Generate(&context, request);
  return ReadStream(*reader);
}

v1::GenerateRequest ShortRequest(int32_t max_tokens) {
  v1::GenerateRequest request;
  request.mutable_prompt_tokens()->add_ids('p');
  request.mutable_stopping()->set_max_tokens(max_tokens);
  return request;
}

}  // namespace switchyard
