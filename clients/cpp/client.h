#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "switchyard/v1/experts.grpc.pb.h"
#include "switchyard/v1/inference.grpc.pb.h"

namespace switchyard {

// TLS as a client: PEM texts.
struct ClientTls {
  std::string certificate_authorities;  // whom to believe; empty: those of the system
  std::string certificate;              // for servers that ask for one; else empty, as its key
  std::string key;
  std::string server_name;  // that the certificate must have, if not the one of the address
};

struct ClientOptions {
  // Largest messages to send and to accept. gRPC's own default of 4 MiB is too small for long
  // prompts with logprobs.
  int32_t max_send_bytes = 64 << 20;
  int32_t max_receive_bytes = 64 << 20;
  // How long one call may take from first to last byte; the server stops working for it then.
  // Absent: no limit.
  std::optional<std::chrono::milliseconds> deadline = {};
  // Absent: plaintext.
  std::optional<ClientTls> tls = {};
  // For servers that want one; empty: none. Without TLS everybody on the way can read it.
  std::string api_key = {};
  // Clients of one address in a process share a connection unless they ask for their own.
  bool own_connection = false;
  // How many bytes of a stream the server may send ahead of its reader. Absent: gRPC adapts it.
  std::optional<int32_t> stream_window_bytes = {};
};

// What to do after a piece of a stream.
enum class StreamVerdict : uint8_t { kContinue, kCancel };

// What grpc.health.v1 says of a service.
enum class ServingStatus : uint8_t { kUnknown = 0, kServing = 1, kNotServing = 2 };

// How long to wait before sending the same request again, when the server says that this helps:
// its queue is full. Absent for every other error.
std::optional<std::chrono::milliseconds> RetryDelay(const Status& status);

// A connection to a Switchyard server. Errors are those of the server, with its code and message;
// UNAVAILABLE when it cannot be reached. Safe to use from any number of threads.
class Client {
 public:
  // Connects lazily: an unreachable address shows in the first call. `address` is "host:port".
  explicit Client(const std::string& address, const ClientOptions& options = {});

  using DeltaCallback = std::function<StreamVerdict(const v1::Delta& delta)>;
  using PromptLogprobsCallback = std::function<void(const v1::PromptLogprobs& logprobs)>;
  using RoutingCallback = std::function<void(const v1::RoutingTrace& trace)>;

  // Streams the completions: `on_delta` for each piece, in order, from the calling thread, which
  // says whose it is; `on_prompt_logprobs` and `on_routing`, if there, for what was asked of the
  // prompt and of the experts. Returns when the stream has ended. CANCELLED after kCancel;
  // DATA_LOSS when the stream ends without its `finished` event.
  StatusOr<v1::Finished> Generate(
      const v1::GenerateRequest& request,
      const DeltaCallback& on_delta,
      const PromptLogprobsCallback& on_prompt_logprobs = {},
      const RoutingCallback& on_routing = {}
  ) const;

  StatusOr<v1::GenerateOnceResponse> GenerateOnce(const v1::GenerateRequest& request) const;
  // How likely given continuations of a prompt are.
  StatusOr<v1::ScoreResponse> Score(const v1::ScoreRequest& request) const;
  StatusOr<v1::TokenizeResponse> Tokenize(const v1::TokenizeRequest& request) const;
  StatusOr<std::string> Detokenize(const std::vector<int32_t>& token_ids) const;
  StatusOr<v1::GetModelInfoResponse> GetModelInfo() const;
  StatusOr<v1::GetLoadResponse> GetLoad() const;
  using ExpertStatsCallback = std::function<StreamVerdict(const v1::GetExpertStatsResponse& stats)>;

  // Calls `on_stats` from the calling thread at each interval, until it says kCancel (then OK) or
  // the server ends the stream.
  Status StreamExpertStats(
      const v1::StreamExpertStatsRequest& request, const ExpertStatsCallback& on_stats
  ) const;
  StatusOr<v1::GetExpertStatsResponse> GetExpertStats(const v1::GetExpertStatsRequest& request
  ) const;
  // WINDOW_SINCE_RESET begins now. At a server's admin address, as the next one.
  Status ResetExpertWindow() const;
  // Which tokens of a text each expert gets more often than chance.
  StatusOr<v1::ProfileExpertsResponse> ProfileExperts(const v1::ProfileExpertsRequest& request
  ) const;

  // Asks grpc.health.v1 once. "" stands for the whole server. NOT_FOUND for a service it does not
  // know.
  StatusOr<ServingStatus> CheckHealth(const std::string& service) const;

  // Returns when the whole server is SERVING: the model is loaded and warm. DEADLINE_EXCEEDED,
  // saying what the server last answered, when that takes longer than `timeout`.
  Status WaitUntilServing(std::chrono::milliseconds timeout) const;

  const std::string& address() const { return address_; }

 private:
  friend class AsyncGeneration;

  void Prepare(grpc::ClientContext& context) const;
  // The API key, if there is one.
  void AddKey(grpc::ClientContext& context) const;
  Status FromGrpc(const grpc::Status& status) const;

  std::string address_;
  ClientOptions options_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::InferenceService::Stub> inference_;
  std::unique_ptr<v1::ExpertService::Stub> experts_;
};

}  // namespace switchyard
