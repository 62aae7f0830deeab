#include "text/json_field.h"

#include <limits>

namespace switchyard {
namespace {

constexpr int32_t kIdLimit = std::numeric_limits<int32_t>::max();

}  // namespace

// Elements and member names with odd characters come with brackets of their own: merges[17],
// vocab["a b"].
JsonField JsonField::Child(const nlohmann::json& value, const std::string& step) const {
  JsonField child(value, file_name_);
  const bool dotted = !path_.empty() && step.front() != '[';
  child.path_ = path_ + (dotted ? "." : "") + step;
  return child;
}

std::string JsonField::Where() const {
  return path_.empty() ? file_name_ : file_name_ + ": " + path_;
}

Status JsonField::Expected(const std::string& what) const {
  return InvalidArgument(Where(), " is of type ", value_->type_name(), "; expected ", what);
}

StatusOr<std::optional<JsonField>> JsonField::Find(const std::string& key) const {
  if (!value_->is_object()) {
    return Expected("an object");
  }
  const auto found = value_->find(key);
  if (found == value_->end() || found->is_null()) {
    return std::optional<JsonField>();
  }
  return std::optional<JsonField>(Child(*found, key));
}

StatusOr<JsonField> JsonField::Require(const std::string& key) const {
  ASSIGN_OR_RETURN(const std::optional<JsonField> found, Find(key));
  if (!found) {
    return InvalidArgument(Where(), " lacks the field \"", key, "\"");
  }
  return *found;
}

StatusOr<std::vector<JsonField>> JsonField::Elements() const {
  if (!value_->is_array()) {
    return Expected("an array");
  }
  std::vector<JsonField> elements;
  elements.reserve(value_->size());
  for (size_t i = 0; i < value_->size(); ++i) {
    elements.push_back(Child((*value_)[i], Concat("[", i, "]")));
  }
  return elements;
}

StatusOr<std::vector<std::pair<std::string, JsonField>>> JsonField::Members() const {
  if (!value_->is_object()) {
    return Expected("an object");
  }
  std::vector<std::pair<std::string, JsonField>> members;
  members.reserve(value_->size());
  for (const auto& member : value_->items()) {
    members.emplace_back(member.key(), Child(member.value(), Concat("[\"", member.key(), "\"]")));
  }
  return members;
}

StatusOr<std::string> JsonField::String() const {
  if (!value_->is_string()) {
    return Expected("a string");
  }
  return value_->get<std::string>();
}

StatusOr<bool> JsonField::Bool() const {
  if (!value_->is_boolean()) {
    return Expected("true or false");
  }
  return value_->get<bool>();
}

StatusOr<int32_t> JsonField::Id() const {
  if (!value_->is_number_integer()) {
    return Expected("an integer");
  }
  // Numbers above the signed range are kept unsigned by the parser, and only those.
  const bool fits = value_->is_number_unsigned() ? value_->get<uint64_t>() < uint64_t{kIdLimit}
                                                 : value_->get<int64_t>() >= 0;
  if (!fits) {
    return InvalidArgument(Where(), " is ", value_->dump(), "; an id lies in [0, ", kIdLimit, ")");
  }
  return value_->get<int32_t>();
}

StatusOr<std::string> JsonField::RequireString(const std::string& key) const {
  ASSIGN_OR_RETURN(const JsonField field, Require(key));
  return field.String();
}

StatusOr<int32_t> JsonField::RequireId(const std::string& key) const {
  ASSIGN_OR_RETURN(const JsonField field, Require(key));
  return field.Id();
}

StatusOr<std::vector<JsonField>> JsonField::RequireElements(const std::string& key) const {
  ASSIGN_OR_RETURN(const JsonField field, Require(key));
  return field.Elements();
}

StatusOr<std::string> JsonField::StringOr(const std::string& key, const std::string& otherwise)
    const {
  ASSIGN_OR_RETURN(const std::optional<JsonField> found, Find(key));
  return found ? found->String() : StatusOr<std::string>(otherwise);
}

StatusOr<bool> JsonField::BoolOr(const std::string& key, bool otherwise) const {
  ASSIGN_OR_RETURN(const std::optional<JsonField> found, Find(key));
  return found ? found->Bool() : StatusOr<bool>(otherwise);
}

}  // namespace switchyard
