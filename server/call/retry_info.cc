#include "server/call/retry_info.h"

#include "switchyard/v1/error_details.pb.h"

namespace switchyard {

Status WithRetryDelay(Status status, std::chrono::milliseconds delay) {
  v1::RetryInfo info;
  info.mutable_retry_delay()->set_seconds(delay.count() / 1000);
  info.mutable_retry_delay()->set_nanos(static_cast<int32_t>(delay.count() % 1000 * 1'000'000));
  status.SetPayload(
      "type.googleapis.com/google.rpc.RetryInfo", absl::Cord(info.SerializeAsString())
  );
  return status;
}

}  // namespace switchyard
