#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "text/json_field.h"

namespace switchyard {

// A part of a tokenizer.json that says in "type" what it is.
struct TypedField {
  std::string type;
  JsonField field;
};

// The parts in the order they apply: one, or those of a "Sequence", which lists them under
// `list_key` and may contain further sequences. None when the field is absent.
StatusOr<std::vector<TypedField>> FlattenSequence(
    const std::optional<JsonField>& field, const std::string& list_key
);

}  // namespace switchyard
