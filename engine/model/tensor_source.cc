#include "engine/model/tensor_source.h"

#include <utility>

namespace switchyard {

void* TensorSource::Keep(std::vector<char> memory) {
  kept_.push_back(std::move(memory));
  return kept_.back().data();
}

}  // namespace switchyard
