#pragma once

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include "base/status.h"
#include "server/serving_state.h"
#include "switchyard/v1/inference.grpc.pb.h"

namespace switchyard {

// Text generation on gRPC's callback API: no thread waits for a request. Every method takes raw
// bytes (see message_bytes.h).
class InferenceService final
    : public v1::InferenceService::WithRawCallbackMethod_Generate<
          v1::InferenceService::WithRawCallbackMethod_GenerateOnce<
              v1::InferenceService::WithRawCallbackMethod_Score<
                  v1::InferenceService::WithRawCallbackMethod_Tokenize<
                      v1::InferenceService::WithRawCallbackMethod_Detokenize<
                          v1::InferenceService::WithRawCallbackMethod_GetModelInfo<
                              v1::InferenceService::WithRawCallbackMethod_GetLoad<
                                  v1::InferenceService::Service>>>>>>> {
 public:
  // `state` must outlive this and every RPC.
  explicit InferenceService(ServingState& state) : state_(state) {}

  grpc::ServerWriteReactor<grpc::ByteBuffer>* Generate(
      grpc::CallbackServerContext* context, const grpc::ByteBuffer* request
  ) override;
  grpc::ServerUnaryReactor* GenerateOnce(
      grpc::CallbackServerContext* context,
      const grpc::ByteBuffer* request,
      grpc::ByteBuffer* response
  ) override;
  grpc::ServerUnaryReactor* Score(
      grpc::CallbackServerContext* context,
      const grpc::ByteBuffer* request,
      grpc::ByteBuffer* response
  ) override;
  grpc::ServerUnaryReactor* Tokenize(
      grpc::CallbackServerContext* context,
      const grpc::ByteBuffer* request,
      grpc::ByteBuffer* response
  ) override;
  grpc::ServerUnaryReactor* Detokenize(
      grpc::CallbackServerContext* context,
      const grpc::ByteBuffer* request,
      grpc::ByteBuffer* response
  ) override;
  grpc::ServerUnaryReactor* GetModelInfo(
      grpc::CallbackServerContext* context,
      const grpc::ByteBuffer* request,
      grpc::ByteBuffer* response
  ) override;
  grpc::ServerUnaryReactor* GetLoad(
      grpc::CallbackServerContext* context,
      const grpc::ByteBuffer* request,
      grpc::ByteBuffer* response
  ) override;

 private:
  Status AnswerTokenize(const v1::TokenizeRequest& request, v1::TokenizeResponse& response) const;
  Status AnswerDetokenize(const v1::DetokenizeRequest& request, v1::DetokenizeResponse& response)
      const;
  Status AnswerModelInfo(const v1::GetModelInfoRequest& request, v1::GetModelInfoResponse& response)
      const;
  Status AnswerLoad(const v1::GetLoadRequest& request, v1::GetLoadResponse& response) const;

  ServingState& state_;
};

}  // namespace switchyard
