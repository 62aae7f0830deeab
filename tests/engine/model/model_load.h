#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "engine/model/model.h"
#include "kernels/ops.h"
#include "tests/support/temporary_folder.h"

namespace switchyard {

using Json = nlohmann::json;

std::filesystem::path Golden(const std::string& name);

// A folder for a copy of a golden checkpoint, to make faults in.
class ModelLoad : public testing::Test {
 protected:
  ModelLoad();

  void Copy(const std::string& golden) { folder_.CopyFrom(Golden(golden)); }
  // Sets fields of config.json.
  void Change(const Json& fields);
  void Rename(const std::string& from, const std::string& to);
  // One element of a float32 tensor of model.safetensors.
  void Overwrite(const std::string& tensor, size_t element, float value);

  StatusOr<std::unique_ptr<Model>> Load(const WeightOptions& options = {});
  std::string LoadMessage();

  TemporaryFolder folder_;
  std::unique_ptr<Ops> ops_;
};

}  // namespace switchyard
