#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "engine/model/tensor_source.h"
#include "kernels/ops.h"
#include "tests/benchmarks/random_jetmoe.h"

namespace switchyard {

// Random BF16 numbers in the memory of a backend, which tensors of any shape are parts of: nothing
// they say makes sense, everything they cost is real: the CUDA backend copies every weight to a
// place of its own. Only a few megabytes come from the host; the backend copies them within its own
// memory, so that a model of any size is there at once.
class RandomPool {
 public:
  // Room for tensors of `elements` elements. Normal numbers of this deviation. `ops` must outlive
  // the pool.
  static StatusOr<RandomPool> Create(Ops& ops, int64_t elements, float deviation);

  // The number-th part; parts overlap, but no two of a few thousand begin at the same element.
  // Requires: no more elements than there is room for.
  void* Part(int64_t number) const;

 private:
  explicit RandomPool(std::unique_ptr<Buffer> memory) : memory_(std::move(memory)) {}

  std::unique_ptr<Buffer> memory_;
};

// A model's tensors, all of them parts of one pool.
class RandomTensors final : public TensorSource {
 public:
  static StatusOr<std::unique_ptr<RandomTensors>> Create(
      Ops& ops, const std::vector<NamedShape>& shapes, float deviation
  );

  const StoredTensor* Find(const std::string& name) const override;
  std::string FileOf(const std::string& /*name*/) const override { return "random tensors"; }
  std::vector<std::string> Names() const override;

 private:
  explicit RandomTensors(RandomPool pool) : pool_(std::move(pool)) {}

  RandomPool pool_;
  std::map<std::string, StoredTensor> tensors_;
};

}  // namespace switchyard
