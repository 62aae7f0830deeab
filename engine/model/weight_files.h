#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "engine/model/safetensors.h"
#include "engine/model/tensor_source.h"

namespace switchyard {

// All weights of a model folder: model.safetensors, or the shards that model.safetensors.index.json
// names.
class WeightFiles final : public TensorSource {
 public:
  // NOT_FOUND without either file; DATA_LOSS when a shard is missing, or a tensor is in another
  // shard than the index says, in two, or in none.
  static StatusOr<std::unique_ptr<WeightFiles>> Open(const std::filesystem::path& folder);

  const StoredTensor* Find(const std::string& name) const override;
  std::string FileOf(const std::string& name) const override;
  std::vector<std::string> Names() const override;
  int64_t bytes() const;

 private:
  std::vector<std::unique_ptr<SafetensorsFile>> files_;
  std::map<std::string, size_t> file_of_;
};

}  // namespace switchyard
