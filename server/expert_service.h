#pragma once

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include "base/status.h"
#include "engine/expert_statistics.h"
#include "server/serving_state.h"
#include "switchyard/v1/experts.grpc.pb.h"

namespace switchyard {

// Which expert did which work.
class ExpertService final
    : public v1::ExpertService::WithRawCallbackMethod_GetExpertStats<v1::ExpertService::Service> {
 public:
  // `state` must outlive this and every RPC.
  explicit ExpertService(ServingState& state) : state_(state) {}

  // Answered from the inquiry thread, because the engine gives its counters out only between two
  // steps.
  grpc::ServerUnaryReactor* GetExpertStats(
      grpc::CallbackServerContext* context,
      const grpc::ByteBuffer* request,
      grpc::ByteBuffer* response
  ) override;

 private:
  Status Answer(const v1::GetExpertStatsRequest& request, v1::GetExpertStatsResponse& response)
      const;

  ServingState& state_;
};

// Pure: the routers, kinds and phases of `statistics` that `request` asks for. INVALID_ARGUMENT (a
// FieldViolation) for one that does not exist.
StatusOr<v1::GetExpertStatsResponse> SelectExpertStats(
    const ExpertStatistics& statistics, const v1::GetExpertStatsRequest& request
);

}  // namespace switchyard
