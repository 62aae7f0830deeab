#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"

namespace switchyard {

// INVALID_ARGUMENT "`field` `description`", with a google.rpc.BadRequest that carries the two
// apart, so that a client can point at the field. `field` is a path in the request:
// "stopping.stop_strings[2]". `description` goes on after the field's name: "is 1.5; it must be in
// (0, 1]; ...".
Status FieldViolation(const std::string& field, const std::string& description);

// A FieldViolation when `id` is not in [0, vocabulary_size).
Status CheckTokenId(const std::string& field, int64_t id, int32_t vocabulary_size);

// A FieldViolation when a repeated field has more than `most` entries.
Status CheckCount(const std::string& field, int count, int most);

}  // namespace switchyard
