#include "base/status.h"

namespace switchyard {

Status WithContext(const Status& status, const std::string& context) {
  if (status.ok()) {
    return status;
  }
  return Status(status.code(), Concat(context, ": ", MessageOf(status)));
}

std::string MessageOf(const Status& status) {
  return std::string(status.message());
}

std::string NameOf(StatusCode code) {
  const std::string name = absl::StatusCodeToString(code);
  return name.empty() ? std::to_string(static_cast<int>(code)) : name;
}

}  // namespace switchyard
