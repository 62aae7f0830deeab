#include "tests/gpu/random_tensors.h"

#include <random>
#include <utility>

#include "base/check.h"
#include "kernels/float16.h"

namespace switchyard {
namespace {

constexpr int64_t kElementBytes = 2;
constexpr int64_t kBlockElements = int64_t{1} << 20;  // that come from the host
// Each block begins with another element of it, so that rows of a matrix do not repeat.
constexpr int64_t kRotation = 7919;
constexpr int64_t kAlignedElements = 128;

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

int64_t RandomPool::Stride(int64_t elements) {
  return (elements + kAlignedElements - 1) / kAlignedElements * kAlignedElements;
}

void* RandomPool::At(int64_t element) const {
  CHECK(element * kElementBytes <= memory_->bytes()) << "element " << element;
  return static_cast<char*>(memory_->data()) + element * kElementBytes;
}

StatusOr<std::unique_ptr<RandomTensors>> RandomTensors::Create(
    Ops& ops, const std::vector<NamedShape>& shapes, float deviation
) {
  int64_t elements = 0;
  for (const NamedShape& tensor : shapes) {
    elements += RandomPool::Stride(ElementsOf(tensor));
  }
  ASSIGN_OR_RETURN(RandomPool pool, RandomPool::Create(ops, elements, deviation));
  std::unique_ptr<RandomTensors> tensors(new RandomTensors(std::move(pool)));
  int64_t begin = 0;
  for (const NamedShape& tensor : shapes) {
    tensors->tensors_[tensor.name] = {
        .dtype = "BF16",
        .shape = tensor.shape,
        .data = tensors->pool_.At(begin),
        .bytes = ElementsOf(tensor) * kElementBytes,
        .place = TensorPlace::kBackend};
    begin += RandomPool::Stride(ElementsOf(tensor));
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
