#pragma once

#include <string>
#include <vector>

#include "engine/model/safetensors.h"

namespace switchyard {

// Where the tensors of a model come from. They stay valid as long as this.
class TensorSource {
 public:
  virtual ~TensorSource() = default;

  // Null when there is no such tensor.
  virtual const StoredTensor* Find(const std::string& name) const = 0;
  // The file a tensor lies in, or what takes its place, for messages.
  virtual std::string FileOf(const std::string& name) const = 0;
  virtual std::vector<std::string> Names() const = 0;

  // Memory for tensors that were converted while loading; lives as long as this.
  void* Keep(std::vector<char> memory);

 private:
  std::vector<std::vector<char>> kept_;
};

}  // namespace switchyard
