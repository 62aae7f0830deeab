#include "engine/model/config_reader.h"

#include <cctype>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "base/check.h"
#include "base/json_text.h"

namespace switchyard {
namespace {

using Json = nlohmann::json;

constexpr int64_t kMaxInteger = (int64_t{1} << 31) - 1;
constexpr int64_t kMaxConfigBytes = int64_t{16} << 20;

bool IsNone(const Json& value) {
  if (value.is_null()) {
    return true;
  }
  if (!value.is_string()) {
    return false;
  }
  std::string text = value.get<std::string>();
  for (char& letter : text) {
    letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  }
  return text == "none";
}

}  // namespace

StatusOr<ConfigReader> ConfigReader::Open(const std::filesystem::path& path) {
  ASSIGN_OR_RETURN(Json fields, ReadJsonFile(path, kMaxConfigBytes));
  if (!fields.is_object()) {
    return DataLoss(path.string(), ": is not a JSON object");
  }
  return Of(std::move(fields), path.string());
}

ConfigReader ConfigReader::Of(Json fields, const std::string& name) {
  CHECK(fields.is_object()) << name << " is no object";
  ConfigReader reader;
  reader.path_ = name;
  reader.fields_ = std::move(fields);
  return reader;
}

bool ConfigReader::Has(const std::string& name) const {
  return fields_.contains(name);
}

void ConfigReader::Fail(const std::string& message) {
  if (status_.ok()) {
    status_ = InvalidArgument(path_.string(), ": ", message);
  }
}

const Json* ConfigReader::Find(std::initializer_list<const char*> names) {
  for (const char* name : names) {
    const auto found = fields_.find(name);
    if (found != fields_.end() && !IsNone(*found)) {
      found_name_ = name;
      return &*found;
    }
  }
  return nullptr;
}

std::optional<double> ConfigReader::Number(std::initializer_list<const char*> names) {
  const Json* value = Find(names);
  if (value == nullptr) {
    return std::nullopt;
  }
  double number = std::nan("");
  if (value->is_number()) {
    number = value->get<double>();
  } else if (value->is_boolean()) {
    number = value->get<bool>() ? 1 : 0;
  } else if (value->is_string()) {
    const std::string text = value->get<std::string>();
    char* end = nullptr;
    number = std::strtod(text.c_str(), &end);
    if (text.empty() || *end != '\0') {
      number = std::nan("");
    }
  }
  if (!std::isfinite(number)) {
    Fail(Concat(found_name_, " is ", value->dump(), ", not a finite number"));
    return std::nullopt;
  }
  return number;
}

std::optional<int64_t> ConfigReader::Integer(
    std::initializer_list<const char*> names, int64_t least
) {
  const std::optional<double> number = Number(names);
  if (!number) {
    return std::nullopt;
  }
  if (*number != std::floor(*number) || *number < static_cast<double>(least) ||
      *number > static_cast<double>(kMaxInteger)) {
    Fail(Concat(
        found_name_, " is ", *number, ", not a whole number in [", least, ", ", kMaxInteger, "]"
    ));
    return std::nullopt;
  }
  return static_cast<int64_t>(*number);
}

int64_t ConfigReader::Positive(std::initializer_list<const char*> names) {
  const std::optional<int64_t> number = Integer(names, 1);
  if (!number) {
    Fail(Concat(*names.begin(), " is missing"));
  }
  return number.value_or(1);
}

int64_t ConfigReader::PositiveOr(std::initializer_list<const char*> names, int64_t otherwise) {
  return Integer(names, 1).value_or(otherwise);
}

std::optional<int64_t> ConfigReader::OptionalPositive(std::initializer_list<const char*> names) {
  return Integer(names, 1);
}

int64_t ConfigReader::NonNegativeOr(std::initializer_list<const char*> names, int64_t otherwise) {
  return Integer(names, 0).value_or(otherwise);
}

double ConfigReader::NumberOr(std::initializer_list<const char*> names, double otherwise) {
  return Number(names).value_or(otherwise);
}

double ConfigReader::NestedNumberOr(const char* outer, const char* name, double otherwise) {
  const Json* object = Find({outer});
  if (object == nullptr || !object->is_object() || !object->contains(name)) {
    return otherwise;
  }
  const Json& value = (*object)[name];
  if (!value.is_number() || !std::isfinite(value.get<double>())) {
    Fail(Concat(outer, ".", name, " is ", value.dump(), ", not a finite number"));
    return otherwise;
  }
  return value.get<double>();
}

void ConfigReader::Refuse(const char* name, std::initializer_list<const char*> harmless) {
  const Json* value = Find({name});
  if (value == nullptr || *value == Json(0) || *value == Json(0.0) || *value == Json(false) ||
      *value == Json("0") || value->empty()) {
    return;
  }
  for (const char* word : harmless) {
    if (*value == Json(word)) {
      return;
    }
  }
  Fail(Concat(name, " is ", value->dump(), ": this option changes the result and is not supported")
  );
}

bool ConfigReader::FlagOr(std::initializer_list<const char*> names, bool otherwise) {
  const std::optional<double> number = Number(names);
  if (number && *number != 0 && *number != 1) {
    Fail(Concat(found_name_, " is ", *number, ", not a flag (0, 1, true or false)"));
  }
  return number ? *number == 1 : otherwise;
}

std::string ConfigReader::TextOr(
    std::initializer_list<const char*> names, const std::string& otherwise
) {
  const Json* value = Find(names);
  if (value == nullptr) {
    return otherwise;
  }
  if (!value->is_string()) {
    Fail(Concat(found_name_, " is ", value->dump(), ", not a word"));
    return otherwise;
  }
  return value->get<std::string>();
}

std::vector<int32_t> ConfigReader::TokenIds(const char* name) {
  const Json* value = Find({name});
  if (value == nullptr) {
    return {};
  }
  const Json list = value->is_array() ? *value : Json::array({*value});
  std::vector<int32_t> ids;
  for (const Json& id : list) {
    if (!id.is_number_unsigned() || id.get<uint64_t>() > static_cast<uint64_t>(kMaxInteger)) {
      Fail(Concat(name, " holds ", id.dump(), ", not a token id"));
      return {};
    }
    ids.push_back(id.get<int32_t>());
  }
  return ids;
}

}  // namespace switchyard
