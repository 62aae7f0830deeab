#pragma once

#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"

namespace switchyard {

// Reads fields of a config.json whose types nobody guarantees: numbers may be strings ("76",
// "none"), flags may be 0/1, and a field may go by several names. The first bad field makes
// status() an error that names file, field and value; later reads return their default, so that a
// family reads straight through and asks once at the end.
class ConfigReader {
 public:
  // NOT_FOUND or DATA_LOSS when the file is not there or not a JSON object.
  static StatusOr<ConfigReader> Open(const std::filesystem::path& path);
  // Fields that are in no file. Requires: an object. `name` takes the place of the path in errors.
  static ConfigReader Of(nlohmann::json fields, const std::string& name);

  bool Has(const std::string& name) const;

  // A required or defaulted whole number in [1, 2^31). `names`: the spellings in use; the first
  // that is there counts.
  int64_t Positive(std::initializer_list<const char*> names);
  int64_t PositiveOr(std::initializer_list<const char*> names, int64_t otherwise);
  std::optional<int64_t> OptionalPositive(std::initializer_list<const char*> names);
  // A whole number in [0, 2^31).
  int64_t NonNegativeOr(std::initializer_list<const char*> names, int64_t otherwise);
  // A finite number.
  double NumberOr(std::initializer_list<const char*> names, double otherwise);
  // A finite number inside an object field: outer.name.
  double NestedNumberOr(const char* outer, const char* name, double otherwise);
  bool FlagOr(std::initializer_list<const char*> names, bool otherwise);
  std::string TextOr(std::initializer_list<const char*> names, const std::string& otherwise);
  // A token id or a list of them; empty when absent or null.
  std::vector<int32_t> TokenIds(const char* name);

  // Fails unless the field is absent, null, "none", 0, false, empty or one of `harmless`: for
  // options that change the result and are not supported.
  void Refuse(const char* name, std::initializer_list<const char*> harmless = {});

  // An error of the family's own, in the same form.
  void Fail(const std::string& message);
  Status status() const { return status_; }
  const std::filesystem::path& path() const { return path_; }

 private:
  // Null when none of the names is there, or it is null or the string "none".
  const nlohmann::json* Find(std::initializer_list<const char*> names);
  std::optional<double> Number(std::initializer_list<const char*> names);
  std::optional<int64_t> Integer(std::initializer_list<const char*> names, int64_t least);

  std::filesystem::path path_;
  nlohmann::json fields_;
  std::string found_name_;  // the spelling that the last Find found
  Status status_;
};

}  // namespace switchyard
