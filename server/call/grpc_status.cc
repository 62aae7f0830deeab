#include "server/call/grpc_status.h"

#include <string>

#include "switchyard/v1/error_details.pb.h"

namespace switchyard {

grpc::Status ToGrpcStatus(const Status& status) {
  if (status.ok()) {
    return grpc::Status::OK;
  }
  const StatusCode known =
      status.code() == StatusCode::kUnknown ? StatusCode::kInternal : status.code();
  const auto code = static_cast<grpc::StatusCode>(known);

  v1::ErrorStatus details;
  status.ForEachPayload([&details](auto type_url, const absl::Cord& payload) {
    google::protobuf::Any* any = details.add_details();
    any->set_type_url(std::string(type_url));
    any->set_value(std::string(payload));
  });
  if (details.details().empty()) {
    return grpc::Status(code, MessageOf(status));
  }
  details.set_code(static_cast<int>(code));
  details.set_message(MessageOf(status));
  return grpc::Status(code, MessageOf(status), details.SerializeAsString());
}

}  // namespace switchyard
