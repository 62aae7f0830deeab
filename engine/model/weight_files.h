#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "engine/model/safetensors.h"

namespace switchyard {

// All weights of a model folder: model.safetensors, or the shards that model.safetensors.index.json
// names.
class WeightFiles {
 public:
  // NOT_FOUND without either file; DATA_LOSS when a shard is missing, or a tensor is in another
  // shard than the index says, in two, or in none.
  static StatusOr<std::unique_ptr<WeightFiles>> Open(const std::filesystem::path& folder);

  // Null when there is no such tensor.
  const StoredTensor* Find(const std::string& name) const;
  // The file a tensor lies in, for messages.
  std::string FileOf(const std::string& name) const;
  std::vector<std::string> Names() const;
  int64_t bytes() const;

  // Memory for tensors that were converted while loading; lives as long as this.
  void* Keep(std::vector<char> memory);

 private:
  std::vector<std::unique_ptr<SafetensorsFile>> files_;
  std::map<std::string, size_t> file_of_;
  std::vector<std::vector<char>> kept_;
};

}  // namespace switchyard
