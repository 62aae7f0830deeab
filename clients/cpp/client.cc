#include "clients/cpp/client.h"

#include <google/protobuf/wrappers.pb.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/channel_arguments.h>

#include <algorithm>
#include <future>
#include <thread>
#include <utility>

#include "clients/cpp/call_status.h"
#include "switchyard/v1/error_details.pb.h"

namespace switchyard {
namespace {

using std::chrono::milliseconds;
using SteadyClock = std::chrono::steady_clock;

constexpr const char* kHealthCheckMethod = "/grpc.health.v1.Health/Check";
constexpr const char* kRetryInfoType = "type.googleapis.com/google.rpc.RetryInfo";
constexpr milliseconds kHealthCallTimeout{1000};
constexpr milliseconds kFirstHealthPause{10};
constexpr milliseconds kLongestHealthPause{250};

std::shared_ptr<grpc::ChannelCredentials> CredentialsOf(const ClientOptions& options) {
  if (!options.tls.has_value()) {
    return grpc::InsecureChannelCredentials();
  }
  return grpc::SslCredentials(
      {.pem_root_certs = options.tls->certificate_authorities,
       .pem_private_key = options.tls->key,
       .pem_cert_chain = options.tls->certificate}
  );
}

std::shared_ptr<grpc::Channel> MakeChannel(
    const std::string& address, const ClientOptions& options
) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxSendMessageSize(options.max_send_bytes);
  arguments.SetMaxReceiveMessageSize(options.max_receive_bytes);
  // gRPC's defaults of 1 s and 120 s would find a server that has just come up far too late.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 5000);
  if (options.own_connection) {
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  }
  if (options.stream_window_bytes.has_value()) {
    arguments.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, *options.stream_window_bytes);
    arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  }
  if (options.tls.has_value() && !options.tls->server_name.empty()) {
    arguments.SetSslTargetNameOverride(options.tls->server_name);
  }
  return grpc::CreateCustomChannel(address, CredentialsOf(options), arguments);
}

const char* NameOf(ServingStatus status) {
  switch (status) {
    case ServingStatus::kServing:
      return "SERVING";
    case ServingStatus::kNotServing:
      return "NOT_SERVING";
    case ServingStatus::kUnknown:
      break;
  }
  return "UNKNOWN";
}

}  // namespace

Client::Client(const std::string& address, const ClientOptions& options)
    : address_(address),
      options_(options),
      channel_(MakeChannel(address, options)),
      inference_(v1::InferenceService::NewStub(channel_)),
      experts_(v1::ExpertService::NewStub(channel_)) {}

void Client::AddKey(grpc::ClientContext& context) const {
  if (!options_.api_key.empty()) {
    context.AddMetadata("authorization", "Bearer " + options_.api_key);
  }
}

void Client::Prepare(grpc::ClientContext& context) const {
  AddKey(context);
  if (options_.deadline.has_value()) {
    context.set_deadline(std::chrono::system_clock::now() + *options_.deadline);
  }
}

Status Client::FromGrpc(const grpc::Status& status) const {
  return StatusOfCall(status, address_);
}

std::optional<milliseconds> RetryDelay(const Status& status) {
  const auto payload = status.GetPayload(kRetryInfoType);
  v1::RetryInfo info;
  if (!payload || !info.ParseFromString(std::string(*payload))) {
    return std::nullopt;
  }
  // A client cannot trust what a server sends: years are enough, and nothing is negative.
  constexpr int64_t kLongestSeconds = 1'000'000'000;
  const int64_t seconds = std::clamp<int64_t>(info.retry_delay().seconds(), 0, kLongestSeconds);
  return milliseconds(1000 * seconds + std::max(0, info.retry_delay().nanos()) / 1'000'000);
}

StatusOr<v1::Finished> Client::Generate(
    const v1::GenerateRequest& request,
    const DeltaCallback& on_delta,
    const PromptLogprobsCallback& on_prompt_logprobs,
    const RoutingCallback& on_routing
) const {
  grpc::ClientContext context;
  Prepare(context);
  const auto reader = inference_->Generate(&context, request);
  std::optional<v1::Finished> finished;
  v1::GenerateResponse response;
  while (reader->Read(&response)) {
    if (response.has_finished()) {
      finished = response.finished();
    } else if (response.has_prompt_logprobs() && on_prompt_logprobs) {
      on_prompt_logprobs(response.prompt_logprobs());
    } else if (response.has_routing() && on_routing) {
      on_routing(response.routing());
    } else if (response.has_delta() && on_delta(response.delta()) == StreamVerdict::kCancel) {
      context.TryCancel();
    }
  }
  RETURN_IF_ERROR(FromGrpc(reader->Finish()));
  if (!finished.has_value()) {
    return DataLoss("server ", address_, " ended the stream without a `finished` event");
  }
  return *std::move(finished);
}

StatusOr<v1::GenerateOnceResponse> Client::GenerateOnce(const v1::GenerateRequest& request) const {
  grpc::ClientContext context;
  Prepare(context);
  v1::GenerateOnceResponse response;
  RETURN_IF_ERROR(FromGrpc(inference_->GenerateOnce(&context, request, &response)));
  return response;
}

StatusOr<v1::ScoreResponse> Client::Score(const v1::ScoreRequest& request) const {
  grpc::ClientContext context;
  Prepare(context);
  v1::ScoreResponse response;
  RETURN_IF_ERROR(FromGrpc(inference_->Score(&context, request, &response)));
  return response;
}

StatusOr<v1::TokenizeResponse> Client::Tokenize(const v1::TokenizeRequest& request) const {
  grpc::ClientContext context;
  Prepare(context);
  v1::TokenizeResponse response;
  RETURN_IF_ERROR(FromGrpc(inference_->Tokenize(&context, request, &response)));
  return response;
}

StatusOr<std::string> Client::Detokenize(const std::vector<int32_t>& token_ids) const {
  grpc::ClientContext context;
  Prepare(context);
  v1::DetokenizeRequest request;
  request.mutable_token_ids()->Add(token_ids.begin(), token_ids.end());
  v1::DetokenizeResponse response;
  RETURN_IF_ERROR(FromGrpc(inference_->Detokenize(&context, request, &response)));
  return std::move(*response.mutable_text());
}

StatusOr<v1::GetModelInfoResponse> Client::GetModelInfo() const {
  grpc::ClientContext context;
  Prepare(context);
  v1::GetModelInfoResponse response;
  RETURN_IF_ERROR(FromGrpc(inference_->GetModelInfo(&context, {}, &response)));
  return response;
}

StatusOr<v1::GetLoadResponse> Client::GetLoad() const {
  grpc::ClientContext context;
  Prepare(context);
  v1::GetLoadResponse response;
  RETURN_IF_ERROR(FromGrpc(inference_->GetLoad(&context, {}, &response)));
  return response;
}

StatusOr<v1::GetExpertStatsResponse> Client::GetExpertStats(const v1::GetExpertStatsRequest& request
) const {
  grpc::ClientContext context;
  Prepare(context);
  v1::GetExpertStatsResponse response;
  RETURN_IF_ERROR(FromGrpc(experts_->GetExpertStats(&context, request, &response)));
  return response;
}

Status Client::ResetExpertWindow() const {
  grpc::ClientContext context;
  Prepare(context);
  v1::ResetExpertWindowResponse response;
  return FromGrpc(experts_->ResetExpertWindow(&context, {}, &response));
}

StatusOr<v1::ProfileExpertsResponse> Client::ProfileExperts(const v1::ProfileExpertsRequest& request
) const {
  grpc::ClientContext context;
  Prepare(context);
  v1::ProfileExpertsResponse response;
  RETURN_IF_ERROR(FromGrpc(experts_->ProfileExperts(&context, request, &response)));
  return response;
}

Status Client::StreamExpertStats(
    const v1::StreamExpertStatsRequest& request, const ExpertStatsCallback& on_stats
) const {
  grpc::ClientContext context;
  Prepare(context);
  const auto reader = experts_->StreamExpertStats(&context, request);
  v1::GetExpertStatsResponse stats;
  bool cancelled = false;
  while (reader->Read(&stats)) {
    if (!cancelled && on_stats(stats) == StreamVerdict::kCancel) {
      cancelled = true;
      context.TryCancel();
    }
  }
  const Status status = FromGrpc(reader->Finish());
  return cancelled ? OkStatus() : status;
}

StatusOr<ServingStatus> Client::CheckHealth(const std::string& service) const {
  // HealthCheckRequest and HealthCheckResponse have one field each, a string and an enum, both
  // number 1: on the wire they are these well-known wrappers. A health.proto of our own, linked
  // into a program that has one as well, would be registered twice and stop that program at its
  // start.
  grpc::TemplatedGenericStub<google::protobuf::StringValue, google::protobuf::Int32Value> stub(
      channel_
  );
  google::protobuf::StringValue request;
  request.set_value(service);
  google::protobuf::Int32Value response;
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kHealthCallTimeout);

  // Shared with the callback, which may still be inside set_value when this thread goes on.
  const auto done = std::make_shared<std::promise<grpc::Status>>();
  stub.UnaryCall(
      &context,
      kHealthCheckMethod,
      grpc::StubOptions(),
      &request,
      &response,
      [done](grpc::Status status) { done->set_value(std::move(status)); }
  );
  RETURN_IF_ERROR(FromGrpc(done->get_future().get()));
  switch (response.value()) {
    case 1:
      return ServingStatus::kServing;
    case 2:
      return ServingStatus::kNotServing;
    default:
      return ServingStatus::kUnknown;
  }
}

Status Client::WaitUntilServing(milliseconds timeout) const {
  const SteadyClock::time_point deadline = SteadyClock::now() + timeout;
  milliseconds pause = kFirstHealthPause;
  while (true) {
    const StatusOr<ServingStatus> health = CheckHealth("");
    if (health.ok() && *health == ServingStatus::kServing) {
      return OkStatus();
    }
    if (SteadyClock::now() + pause > deadline) {
      const std::string answer = health.ok() ? NameOf(*health) : MessageOf(health.status());
      return Status(
          StatusCode::kDeadlineExceeded,
          Concat(
              "server ",
              address_,
              " is not serving after ",
              timeout.count(),
              " ms; last answer: ",
              answer
          )
      );
    }
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, kLongestHealthPause);
  }
}

}  // namespace switchyard
