#include "server/experts/expert_service.h"

#include <memory>

#include "server/call/grpc_status.h"
#include "server/call/unary_call.h"
#include "server/experts/expert_stream.h"
#include "server/experts/profile_call.h"

namespace switchyard {

grpc::ServerUnaryReactor* ExpertService::GetExpertStats(
    grpc::CallbackServerContext* context,
    const grpc::ByteBuffer* request,
    grpc::ByteBuffer* response
) {
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  auto admitted = AdmitCall(state_, "GetExpertStats", *context, door_);
  if (!admitted.ok()) {
    reactor->Finish(ToGrpcStatus(admitted.status()));
    return reactor;
  }
  // gRPC keeps context, request and response until Finish.
  state_.inquiries().Post([this, call = *std::move(admitted), reactor, request, response] {
    const auto answer = [this](const auto& asked, auto& answered) {
      return Answer(asked, answered);
    };
    reactor->Finish(ToGrpcStatus(AnswerBytes<v1::GetExpertStatsRequest, v1::GetExpertStatsResponse>(
        *request, *response, answer
    )));
  });
  return reactor;
}

grpc::ServerWriteReactor<grpc::ByteBuffer>* ExpertService::StreamExpertStats(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request
) {
  const auto call = std::make_shared<ExpertStream>(state_, open_streams_);
  call->Begin(*request, AdmitCall(state_, "StreamExpertStats", *context, door_));
  return call.get();
}

grpc::ServerUnaryReactor* ExpertService::ResetExpertWindow(
    grpc::CallbackServerContext* context,
    const grpc::ByteBuffer* request,
    grpc::ByteBuffer* response
) {
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  auto admitted = AdmitCall(state_, "ResetExpertWindow", *context, door_);
  if (!admitted.ok()) {
    reactor->Finish(ToGrpcStatus(admitted.status()));
    return reactor;
  }
  state_.inquiries().Post([this, call = *std::move(admitted), reactor, request, response] {
    const auto answer = [this](const auto& asked, auto& /*answered*/) { return Reset(asked); };
    reactor->Finish(
        ToGrpcStatus(AnswerBytes<v1::ResetExpertWindowRequest, v1::ResetExpertWindowResponse>(
            *request, *response, answer
        ))
    );
  });
  return reactor;
}

grpc::ServerUnaryReactor* ExpertService::ProfileExperts(
    grpc::CallbackServerContext* context,
    const grpc::ByteBuffer* request,
    grpc::ByteBuffer* response
) {
  const auto call = std::make_shared<ProfileCall>(state_, open_profiles_, *context, *response);
  call->Begin(*request, door_);
  return call.get();
}

Status ExpertService::Answer(
    const v1::GetExpertStatsRequest& request, v1::GetExpertStatsResponse& response
) const {
  ASSIGN_OR_RETURN(const LoadedModel* model, state_.Model(request.model()));
  ASSIGN_OR_RETURN(
      const ExpertSnapshot latest, state_.experts().Snapshot(*model->engine, ExpertFreshness())
  );
  ASSIGN_OR_RETURN(response, state_.experts().Answer(*latest, request));
  response.set_model(model->name);
  return OkStatus();
}

Status ExpertService::Reset(const v1::ResetExpertWindowRequest& request) const {
  RETURN_IF_ERROR(CheckAdminDoor("ResetExpertWindow", door_));
  ASSIGN_OR_RETURN(const LoadedModel* model, state_.Model(request.model()));
  return state_.experts().Reset(*model->engine);
}

}  // namespace switchyard
