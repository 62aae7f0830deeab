#include "clients/cpp/call_status.h"

#include "switchyard/v1/error_details.pb.h"

namespace switchyard {

Status StatusOfCall(const grpc::Status& status, const std::string& address) {
  if (status.ok()) {
    return OkStatus();
  }
  // absl took its codes from gRPC: the numbers are the same.
  const auto code = static_cast<StatusCode>(status.error_code());
  if (code == StatusCode::kUnavailable) {
    return Unavailable("server ", address, ": ", status.error_message());
  }
  Status error(code, status.error_message());
  v1::ErrorStatus details;
  if (details.ParseFromString(status.error_details())) {
    for (const google::protobuf::Any& detail : details.details()) {
      error.SetPayload(detail.type_url(), absl::Cord(detail.value()));
    }
  }
  return error;
}

}  // namespace switchyard
