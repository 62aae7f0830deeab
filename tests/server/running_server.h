#pragma once

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "server/server.h"
#include "switchyard/v1/experts.grpc.pb.h"
#include "switchyard/v1/inference.grpc.pb.h"
#include "tests/server/fake_engine.h"
#include "tests/server/fake_tokenizer.h"

namespace switchyard {

// A model that is only limits, a FakeTokenizer with these pieces and a FakeEngine with this script:
// name "fake", a vocabulary of 300, a context of 64.
std::unique_ptr<LoadedModel> MakeFakeModel(
    std::vector<int32_t> script, std::vector<std::string> pieces
);

// The real server on a free loopback port, and a client of it.
class RunningServer {
 public:
  // Still loading.
  RunningServer();
  explicit RunningServer(const ServerOptions& options);

  // Serves a fake model from now on.
  FakeEngine& SetReady(std::vector<int32_t> script, std::vector<std::string> pieces = {});

  Server& server() { return *server_; }
  v1::InferenceService::Stub& inference() { return *inference_; }
  v1::ExpertService::Stub& experts() { return *experts_; }
  // Requires: the server has an admin address.
  std::unique_ptr<v1::ExpertService::Stub> AdminExperts() const;
  std::shared_ptr<grpc::Channel> channel() { return channel_; }

 private:
  std::unique_ptr<Server> server_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::InferenceService::Stub> inference_;
  std::unique_ptr<v1::ExpertService::Stub> experts_;
};

// All that one Generate RPC brought.
struct Stream {
  grpc::Status status;
  std::string text;
  std::vector<int32_t> token_ids;
  std::vector<v1::TokenLogprobs> logprobs;
  std::vector<v1::TokenLogprobs> prompt_logprobs;
  std::vector<v1::Completion> completions;  // the same by completion
  int deltas = 0;
  std::vector<v1::Finished> finished;
};
Stream ReadStream(grpc::ClientReader<v1::GenerateResponse>& reader);
Stream Generate(v1::InferenceService::Stub& stub, const v1::GenerateRequest& request);

// A request with a prompt of one token and this many tokens to generate.
v1::GenerateRequest ShortRequest(int32_t max_tokens);

}  // namespace switchyard
