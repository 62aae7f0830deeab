#pragma once

#include <string>

#include "base/status.h"

namespace switchyard {

// INVALID_ARGUMENT "`field` `description`", with a google.rpc.BadRequest that carries the two
// apart, so that a client can point at the field. `field` is a path in the request:
// "stopping.stop_strings[2]". `description` goes on after the field's name: "is 1.5; it must be in
// (0, 1]; ...".
Status FieldViolation(const std::string& field, const std::string& description);

}  // namespace switchyard
