#include "server/validation/field_violation.h"

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

Status CheckTokenId(const std::string& field, int64_t id, int32_t vocabulary_size) {
  if (id >= 0 && id < vocabulary_size) {
    return OkStatus();
  }
  return FieldViolation(
      field,
      Concat(
          "is ",
          id,
          "; token ids of this model are in [0, ",
          vocabulary_size,
          "); was it made with another tokenizer?"
      )
  );
}

Status CheckCount(const std::string& field, int count, int most) {
  return count <= most
             ? OkStatus()
             : FieldViolation(
                   field,
                   Concat("has ", count, " entries; at most ", most, " are taken; leave some out")
               );
}

}  // namespace switchyard
