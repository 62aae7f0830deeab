#include "server/field_violation.h"

#include "switchyard/v1/error_details.pb.h"

namespace switchyard {

Status FieldViolation(const std::string& field, const std::string& description) {
  v1::BadRequest bad_request;
  v1::BadRequest::FieldViolation* violation = bad_request.add_field_violations();
  violation->set_field(field);
  violation->set_description(description);

  Status status = InvalidArgument(field, " ", description);
  status.SetPayload(
      "type.googleapis.com/google.rpc.BadRequest", absl::Cord(bad_request.SerializeAsString())
  );
  return status;
}

}  // namespace switchyard
