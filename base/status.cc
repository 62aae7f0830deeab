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

}  // namespace switchyard
