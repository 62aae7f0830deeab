#pragma once

#include <google/protobuf/message.h>

#include <nlohmann/json.hpp>

namespace switchyard {

// The message with its fields' own names. Not protobuf's JSON, which writes 64-bit integers as
// strings, so that `tokens > 100` is no comparison of numbers in jq or JavaScript. Optional fields
// and messages that are absent are left out; enums are their names.
nlohmann::ordered_json ToJson(const google::protobuf::Message& message);

}  // namespace switchyard
