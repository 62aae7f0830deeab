#include "text/typed_field.h"

#include <utility>

namespace switchyard {
namespace {

// The parser bounds how deep sequences can nest.
Status Flatten(
    const JsonField& field, const std::string& list_key, std::vector<TypedField>& parts
) {
  ASSIGN_OR_RETURN(std::string type, field.RequireString("type"));
  if (type != std::string_view("Sequence")) {
    parts.push_back({.type = std::move(type), .field = field});
    return OkStatus();
  }
  ASSIGN_OR_RETURN(const std::vector<JsonField> elements, field.RequireElements(list_key));
  for (const JsonField& element : elements) {
    RETURN_IF_ERROR(Flatten(element, list_key, parts));
  }
  return OkStatus();
}

}  // namespace

StatusOr<std::vector<TypedField>> FlattenSequence(
    const std::optional<JsonField>& field, const std::string& list_key
) {
  std::vector<TypedField> parts;
  if (field) {
    RETURN_IF_ERROR(Flatten(*field, list_key, parts));
  }
  return parts;
}

}  // namespace switchyard
