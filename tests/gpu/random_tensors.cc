#include "tests/gpu/random_tensors.h"

#include <algorithm>
#include <random>
#include <utility>

#include "kernels/float16.h"

namespace switchyard {
namespace {

constexpr int64_t kElementBytes = 2;
constexpr int64_t kBlockElements = int64_t{1} << 20;  // that come from the host
// Each block begins with another element of it, so that rows of a matrix do not repeat.
constexpr int64_t kRotation = 7919;
// Parts begin at multiples of this, as allocations do: wide loads want it.
constexpr int64_t kAlignedElements = 128;
constexpr int64_t kPlaces = kBlockElements / kAlignedElements;
constexpr int64_t kPlaceStep = 4787;  // odd, and so each place comes once in kPlaces parts

int64_t ElementsOf(const NamedShape& tensor) {
  int64_t elements = 1;
  for (const int64_t size : tensor.shape) {
    elements *= size;
  }
  return elements;
}

std::vector<uint16_t> MakeBlock(float deviation) {
  std::mt19937 generator(1);
  std::normal_distribution<float> normal(0, deviation);
  std::vector<uint16_t> block(static_cast<size_t>(kBlockElements));
  for (uint16_t& value : block) {
    value = FloatToBf16(normal(generator));
  }
  return block;
}

}  // namespace

StatusOr<RandomPool> RandomPool::Create(Ops& ops, int64_t elements, float deviation) {
  const int64_t blocks = (elements + kBlockElements - 1) / kBlockElements + 1;
  const int64_t block_bytes = kBlockElements * kElementBytes;
  ASSIGN_OR_RETURN(std::unique_ptr<Buffer> memory, ops.Allocate(blocks * block_bytes));
  auto* const first = static_cast<char*>(memory->data());
  ops.Upload(MakeBlock(deviation).data(), first, block_bytes);
  for (int64_t block = 1; block < blocks; ++block) {
    char* const to = first + block * block_bytes;
    const int64_t head_bytes = block * kRotation % kBlockElements * kElementBytes;
    ops.Copy(first + head_bytes, to, block_bytes - head_bytes);
    ops.Copy(first, to + block_bytes - head_bytes, head_bytes);
  }
  RETURN_IF_ERROR(ops.Finish());
  return RandomPool(std::move(memory));
}

void* RandomPool::Part(int64_t number) const {
  const int64_t place = number * kPlaceStep % kPlaces;
  return static_cast<char*>(memory_->data()) + place * kAlignedElements * kElementBytes;
}

StatusOr<std::unique_ptr<RandomTensors>> RandomTensors::Create(
    Ops& ops, const std::vector<NamedShape>& shapes, float deviation
) {
  int64_t largest = 0;
  for (const NamedShape& tensor : shapes) {
    largest = std::max(largest, ElementsOf(tensor));
  }
  ASSIGN_OR_RETURN(RandomPool pool, RandomPool::Create(ops, largest, deviation));
  std::unique_ptr<RandomTensors> tensors(new RandomTensors(std::move(pool)));
  for (const NamedShape& tensor : shapes) {
    tensors->tensors_[tensor.name] = {
        .dtype = "BF16",
        .shape = tensor.shape,
        .data = tensors->pool_.Part(static_cast<int64_t>(tensors->tensors_.size())),
        .bytes = ElementsOf(tensor) * kElementBytes,
        .place = TensorPlace::kBackend};
  }
  return tensors;
}

const StoredTensor* RandomTensors::Find(const std::string& name) const {
  const auto found = tensors_.find(name);
  return found == tensors_.end() ? nullptr : &found->second;
}

std::vector<std::string> RandomTensors::Names() const {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : tensors_) {
    names.push_back(name);
  }
  return names;
}

}  // namespace switchyard
