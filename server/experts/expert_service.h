#pragma once

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include <atomic>
#include <cstdint>

#include "base/status.h"
#include "server/call/incoming_call.h"
#include "server/serving_state.h"
#include "switchyard/v1/experts.grpc.pb.h"

namespace switchyard {

// Which expert did which work.
class ExpertService final : public v1::ExpertService::WithRawCallbackMethod_GetExpertStats<
                                v1::ExpertService::WithRawCallbackMethod_StreamExpertStats<
                                    v1::ExpertService::WithRawCallbackMethod_ResetExpertWindow<
                                        v1::ExpertService::WithRawCallbackMethod_ProfileExperts<
                                            v1::ExpertService::Service>>>> {
 public:
  // `state` must outlive this and every RPC.
  explicit ExpertService(ServingState& state, Door door = Door::kPublic)
      : state_(state), door_(door) {}

  // Answered from the inquiry thread, because the engine gives its counters out only between two
  // steps.
  grpc::ServerUnaryReactor* GetExpertStats(
      grpc::CallbackServerContext* context,
      const grpc::ByteBuffer* request,
      grpc::ByteBuffer* response
  ) override;
  grpc::ServerWriteReactor<grpc::ByteBuffer>* StreamExpertStats(
      grpc::CallbackServerContext* context, const grpc::ByteBuffer* request
  ) override;
  grpc::ServerUnaryReactor* ResetExpertWindow(
      grpc::CallbackServerContext* context,
      const grpc::ByteBuffer* request,
      grpc::ByteBuffer* response
  ) override;
  grpc::ServerUnaryReactor* ProfileExperts(
      grpc::CallbackServerContext* context,
      const grpc::ByteBuffer* request,
      grpc::ByteBuffer* response
  ) override;

 private:
  Status Answer(const v1::GetExpertStatsRequest& request, v1::GetExpertStatsResponse& response)
      const;
  Status Reset(const v1::ResetExpertWindowRequest& request) const;

  ServingState& state_;
  const Door door_;  // what is for administrators needs the admin address
  std::atomic<int32_t> open_streams_ = 0;
  std::atomic<int32_t> open_profiles_ = 0;
};

}  // namespace switchyard
