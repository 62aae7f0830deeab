#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"

namespace switchyard {

// A value inside a JSON file together with where it stands, so that every complaint names file and
// field:
//   "tokenizer.json: model.merges[17] is a number; expected a string". Borrows the document.
//   Thread-compatible.
class JsonField {
 public:
  JsonField(const nlohmann::json& value, std::string file_name)
      : value_(&value), file_name_(std::move(file_name)) {}

  // The member of an object; a null member counts as absent. INVALID_ARGUMENT when this is not an
  // object.
  StatusOr<std::optional<JsonField>> Find(const std::string& key) const;
  StatusOr<JsonField> Require(const std::string& key) const;

  StatusOr<std::vector<JsonField>> Elements() const;
  StatusOr<std::vector<std::pair<std::string, JsonField>>> Members() const;

  StatusOr<std::string> String() const;
  StatusOr<bool> Bool() const;
  StatusOr<int32_t> Id() const;  // an integer in [0, 2^31)

  // The member's value; it must be there.
  StatusOr<std::string> RequireString(const std::string& key) const;
  StatusOr<int32_t> RequireId(const std::string& key) const;
  StatusOr<std::vector<JsonField>> RequireElements(const std::string& key) const;

  // The member's value, or `otherwise` when it is absent.
  StatusOr<std::string> StringOr(const std::string& key, const std::string& otherwise) const;
  StatusOr<bool> BoolOr(const std::string& key, bool otherwise) const;

  // "tokenizer.json: model.merges[17]", for messages.
  std::string Where() const;
  Status Expected(const std::string& what) const;

  bool IsString() const { return value_->is_string(); }
  bool IsZero() const { return value_->is_number() && *value_ == 0; }
  bool IsArray() const { return value_->is_array(); }

 private:
  JsonField Child(const nlohmann::json& value, const std::string& step) const;

  const nlohmann::json* value_;
  std::string file_name_;
  std::string path_;
};

}  // namespace switchyard
