#include "server/access/api_key_file.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/json_text.h"
#include "server/access/rate_limit.h"

namespace switchyard {
namespace {

using nlohmann::json;

constexpr size_t kMaxKeys = 10'000;
constexpr size_t kMaxNameBytes = 64;
constexpr int64_t kMaxPriority = 100;

bool IsName(const std::string& name) {
  return !name.empty() && name.size() <= kMaxNameBytes &&
         std::all_of(name.begin(), name.end(), [](char letter) {
           return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
                  (letter >= '0' && letter <= '9') || letter == '_' || letter == '.' ||
                  letter == '-';
         });
}

StatusOr<int64_t> ReadInteger(const json& value, int64_t least, int64_t most) {
  // An unsigned number over what int64 holds would come out negative.
  const bool fits = value.is_number_integer() &&
                    (!value.is_number_unsigned() || value.get<uint64_t>() <= uint64_t{INT64_MAX});
  if (!fits || value.get<int64_t>() < least || value.get<int64_t>() > most) {
    return InvalidArgument("is no whole number in [", least, ", ", most, "]");
  }
  return value.get<int64_t>();
}

Status ReadName(const json& value, ApiKey& key) {
  if (!value.is_string() || !IsName(value.get<std::string>())) {
    return InvalidArgument("is no name of 1 to ", kMaxNameBytes, " letters, digits and _.-");
  }
  key.name = value.get<std::string>();
  return OkStatus();
}

Status ReadHash(const json& value, ApiKey& key) {
  const std::optional<KeyHash> hash =
      value.is_string() ? ParseKeyHash(value.get<std::string>()) : std::nullopt;
  if (!hash) {
    return InvalidArgument("is not 64 lower-case hex digits; `switchyard api-key` prints them");
  }
  key.hash = *hash;
  return OkStatus();
}

Status ReadField(const std::string& field, const json& value, ApiKey& key) {
  if (field == "name") {
    return ReadName(value, key);
  }
  if (field == "sha256") {
    return ReadHash(value, key);
  }
  if (field == "requests_per_minute") {
    ASSIGN_OR_RETURN(key.requests_per_minute, ReadInteger(value, 1, RateLimit::kMaxPerMinute));
    return OkStatus();
  }
  if (field == "tokens_per_minute") {
    ASSIGN_OR_RETURN(key.tokens_per_minute, ReadInteger(value, 1, RateLimit::kMaxPerMinute));
    return OkStatus();
  }
  if (field == "priority") {
    ASSIGN_OR_RETURN(const int64_t priority, ReadInteger(value, -kMaxPriority, kMaxPriority));
    key.priority = static_cast<int32_t>(priority);
    return OkStatus();
  }
  if (field == "admin" && value.is_boolean()) {
    key.admin = value.get<bool>();
    return OkStatus();
  }
  return InvalidArgument(
      field == "admin" ? "is neither true nor false"
                       : "is no field of a key; there are name, sha256, requests_per_minute, "
                         "tokens_per_minute, priority and admin"
  );
}

StatusOr<ApiKey> ReadKey(const json& entry) {
  if (!entry.is_object()) {
    return InvalidArgument("is no object");
  }
  ApiKey key;
  for (const auto& [field, value] : entry.items()) {
    RETURN_IF_ERROR(WithContext(ReadField(field, value, key), field));
  }
  if (!entry.contains("name") || !entry.contains("sha256")) {
    return InvalidArgument("has no ", entry.contains("name") ? "sha256" : "name");
  }
  return key;
}

}  // namespace

StatusOr<std::vector<ApiKey>> ParseApiKeys(std::string_view text, const std::string& file_name) {
  ASSIGN_OR_RETURN(const json document, ParseJson(text, file_name));
  if (!document.is_object() || document.size() != 1 || !document.contains("keys") ||
      !document["keys"].is_array()) {
    return InvalidArgument(file_name, " is not of the form {\"keys\": [...]}");
  }
  const json& entries = document["keys"];
  if (entries.empty() || entries.size() > kMaxKeys) {
    return InvalidArgument(
        file_name, " has ", entries.size(), " keys; a server takes 1 to ", kMaxKeys
    );
  }
  std::vector<ApiKey> keys;
  std::set<std::string> names;
  std::set<KeyHash> hashes;
  for (const json& entry : entries) {
    StatusOr<ApiKey> key = ReadKey(entry);
    const std::string where = Concat(file_name, ": keys[", keys.size(), "]");
    if (!key.ok()) {
      return WithContext(key.status(), where);
    }
    if (!names.insert(key->name).second || !hashes.insert(key->hash).second) {
      return InvalidArgument(where, " (", key->name, ") has the name or the sha256 of another");
    }
    keys.push_back(*std::move(key));
  }
  return keys;
}

}  // namespace switchyard
