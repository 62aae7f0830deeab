#include "server/inference_service.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "server/call/grpc_status.h"
#include "server/call/unary_call.h"
#include "server/generation/generate_once.h"
#include "server/generation/generate_stream.h"
#include "server/generation/score_call.h"
#include "server/load_report.h"
#include "server/validation/field_violation.h"
#include "server/validation/request_validation.h"
#include "text/utf8.h"

namespace switchyard {
namespace {

// For RPCs that need nothing but processor time.
template <typename Request, typename Response, typename Answer>
grpc::ServerUnaryReactor* AnswerNow(
    ServingState& state, const UnaryCall& call, const Answer& answer
) {
  grpc::ServerUnaryReactor* const reactor = call.context.DefaultReactor();
  reactor->Finish(ToGrpcStatus(AnswerCall<Request, Response>(state, call, answer)));
  return reactor;
}

}  // namespace

grpc::ServerWriteReactor<grpc::ByteBuffer>* InferenceService::Generate(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request
) {
  const auto call = std::make_shared<GenerateStream>(state_, *context);
  call->Begin(*request, WakeWhen::kAnythingCame);
  return call.get();
}

grpc::ServerUnaryReactor* InferenceService::GenerateOnce(
    grpc::CallbackServerContext* context,
    const grpc::ByteBuffer* request,
    grpc::ByteBuffer* response
) {
  const auto call = std::make_shared<switchyard::GenerateOnce>(state_, *context, *response);
  call->Begin(*request, WakeWhen::kFinished);
  return call.get();
}

grpc::ServerUnaryReactor* InferenceService::Score(
    grpc::CallbackServerContext* context,
    const grpc::ByteBuffer* request,
    grpc::ByteBuffer* response
) {
  const auto call = std::make_shared<ScoreCall>(state_, *context, *response);
  call->Begin(*request, WakeWhen::kFinished);
  return call.get();
}

grpc::ServerUnaryReactor* InferenceService::Tokenize(
    grpc::CallbackServerContext* context,
    const grpc::ByteBuffer* request,
    grpc::ByteBuffer* response
) {
  const auto answer = [this](const auto& asked, auto& answered) {
    return AnswerTokenize(asked, answered);
  };
  return AnswerNow<v1::TokenizeRequest, v1::TokenizeResponse>(
      state_, {"Tokenize", *context, *request, *response}, answer
  );
}

grpc::ServerUnaryReactor* InferenceService::Detokenize(
    grpc::CallbackServerContext* context,
    const grpc::ByteBuffer* request,
    grpc::ByteBuffer* response
) {
  const auto answer = [this](const auto& asked, auto& answered) {
    return AnswerDetokenize(asked, answered);
  };
  return AnswerNow<v1::DetokenizeRequest, v1::DetokenizeResponse>(
      state_, {"Detokenize", *context, *request, *response}, answer
  );
}

grpc::ServerUnaryReactor* InferenceService::GetModelInfo(
    grpc::CallbackServerContext* context,
    const grpc::ByteBuffer* request,
    grpc::ByteBuffer* response
) {
  const auto answer = [this](const auto& asked, auto& answered) {
    return AnswerModelInfo(asked, answered);
  };
  return AnswerNow<v1::GetModelInfoRequest, v1::GetModelInfoResponse>(
      state_, {"GetModelInfo", *context, *request, *response}, answer
  );
}

grpc::ServerUnaryReactor* InferenceService::GetLoad(
    grpc::CallbackServerContext* context,
    const grpc::ByteBuffer* request,
    grpc::ByteBuffer* response
) {
  const auto answer = [this](const auto& asked, auto& answered) {
    return AnswerLoad(asked, answered);
  };
  return AnswerNow<v1::GetLoadRequest, v1::GetLoadResponse>(
      state_, {"GetLoad", *context, *request, *response}, answer
  );
}

Status InferenceService::AnswerTokenize(
    const v1::TokenizeRequest& request, v1::TokenizeResponse& response
) const {
  ASSIGN_OR_RETURN(const LoadedModel* model, state_.Model(request.model()));
  RETURN_IF_ERROR(CheckHasTokenizer("text", *model));
  EncodeOptions options{.add_bos = std::nullopt, .parse_special = request.parse_special_tokens()};
  if (request.has_add_bos()) {
    options.add_bos = request.add_bos();
  }
  const StatusOr<std::vector<int32_t>> ids = model->tokenizer->Encode(request.text(), options);
  if (ids.status().code() == StatusCode::kInvalidArgument) {
    return FieldViolation("text", Concat("cannot be tokenized: ", MessageOf(ids.status())));
  }
  RETURN_IF_ERROR(ids.status());
  for (const int32_t id : *ids) {
    response.add_token_ids(id);
    response.add_pieces(ReplaceInvalidUtf8(model->tokenizer->TokenPiece(id)));
  }
  return OkStatus();
}

Status InferenceService::AnswerDetokenize(
    const v1::DetokenizeRequest& request, v1::DetokenizeResponse& response
) const {
  ASSIGN_OR_RETURN(const LoadedModel* model, state_.Model(request.model()));
  RETURN_IF_ERROR(CheckHasTokenizer("token_ids", *model));
  const std::vector<int32_t> ids(request.token_ids().begin(), request.token_ids().end());
  const StatusOr<std::string> text = model->tokenizer->Decode(ids);
  if (text.status().code() == StatusCode::kInvalidArgument) {
    return FieldViolation("token_ids", Concat("cannot be decoded: ", MessageOf(text.status())));
  }
  RETURN_IF_ERROR(text.status());
  response.set_text(*text);
  return OkStatus();
}

Status InferenceService::AnswerModelInfo(
    const v1::GetModelInfoRequest& request, v1::GetModelInfoResponse& response
) const {
  ASSIGN_OR_RETURN(const LoadedModel* model, state_.Model(request.model()));
  response = model->info;
  return OkStatus();
}

Status InferenceService::AnswerLoad(
    const v1::GetLoadRequest& request, v1::GetLoadResponse& response
) const {
  ASSIGN_OR_RETURN(const LoadedModel* model, state_.Model(request.model()));
  response = DescribeLoad(model->engine->Load(), state_);
  return OkStatus();
}

}  // namespace switchyard
