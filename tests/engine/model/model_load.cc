#include "tests/engine/model/model_load.h"

#include <cstring>

#include "kernels/backend.h"

namespace switchyard {

std::filesystem::path Golden(const std::string& name) {
  return std::filesystem::path(SWITCHYARD_SOURCE_DIR) / "tests/golden/data" / name;
}

ModelLoad::ModelLoad() : ops_(*MakeOps({.device = "reference", .threads = 1})) {}

void ModelLoad::Change(const Json& fields) {
  Json config = Json::parse(ReadWholeFile(folder_.path() / "config.json"));
  config.update(fields);
  folder_.Write("config.json", config.dump());
}

void ModelLoad::Rename(const std::string& from, const std::string& to) {
  Json config = Json::parse(ReadWholeFile(folder_.path() / "config.json"));
  config[to] = config.at(from);
  config.erase(from);
  folder_.Write("config.json", config.dump());
}

void ModelLoad::Overwrite(const std::string& tensor, size_t element, float value) {
  std::string weights = ReadWholeFile(folder_.path() / "model.safetensors");
  uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, weights.data(), sizeof(header_bytes));
  const Json header = Json::parse(weights.substr(8, header_bytes));
  const size_t begin = 8 + header_bytes + header.at(tensor)["data_offsets"][0].get<size_t>();
  std::memcpy(weights.data() + begin + element * sizeof(value), &value, sizeof(value));
  folder_.Write("model.safetensors", weights);
}

StatusOr<std::unique_ptr<Model>> ModelLoad::Load(const WeightOptions& options) {
  return Model::Load(folder_.path(), options, *ops_);
}

std::string ModelLoad::LoadMessage() {
  const auto model = Load();
  return model.ok() ? "loaded" : MessageOf(model.status());
}

}  // namespace switchyard
