#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "engine/model/model.h"
#include "text/tokenizer.h"

namespace switchyard {

// What `inspect` says of a model folder.
struct ModelReport {
  std::string folder;
  const Model& model;
  const Tokenizer* tokenizer = nullptr;  // may be null
};

// For people.
std::string ToText(const ModelReport& report);

// For programs: every number of ToText under the names of ModelConfig.
nlohmann::ordered_json ToJson(const ModelReport& report);

}  // namespace switchyard
