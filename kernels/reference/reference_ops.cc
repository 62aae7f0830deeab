#include "kernels/reference/reference_ops.h"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>

#include "base/available_memory.h"
#include "base/check.h"
#include "kernels/check_weight.h"
#include "kernels/float16.h"

namespace switchyard {
namespace {

constexpr int64_t kCacheLineBytes = 64;  // the widest SIMD register, too
constexpr int64_t kHugePageBytes = int64_t{2} * 1024 * 1024;

// Zeroed; null if there is no memory. What is large lies in huge pages if the system has them: a
// token's keys and values are strewn over the cache, and each ordinary page costs an address
// translation.
void* AllocateZeros(int64_t bytes) {
  const int64_t alignment = bytes < kHugePageBytes ? kCacheLineBytes : kHugePageBytes;
  const auto rounded_bytes = static_cast<size_t>((bytes / alignment + 1) * alignment);
  void* data = std::aligned_alloc(static_cast<size_t>(alignment), rounded_bytes);
  if (data == nullptr) {
    return nullptr;
  }
  if (alignment == kHugePageBytes) {
    // Only a wish: without huge pages everything works the same, slower.
    static_cast<void>(madvise(data, rounded_bytes, MADV_HUGEPAGE));
  }
  std::memset(data, 0, static_cast<size_t>(bytes));
  return data;
}

class HostBuffer : public Buffer {
 public:
  HostBuffer(void* data, int64_t bytes) : data_(data), bytes_(bytes) {}
  HostBuffer(const HostBuffer&) = delete;
  HostBuffer& operator=(const HostBuffer&) = delete;
  ~HostBuffer() override { std::free(data_); }

  void* data() const override { return data_; }
  int64_t bytes() const override { return bytes_; }

 private:
  void* data_;
  int64_t bytes_;
};

}  // namespace

int64_t ReferenceOps::AvailableBytes() const {
  return AvailableMemoryBytes();
}

StatusOr<std::unique_ptr<Buffer>> ReferenceOps::Allocate(int64_t bytes) {
  CHECK(bytes >= 0) << "bytes=" << bytes;
  const int64_t available_bytes = AvailableBytes();
  void* data = bytes <= available_bytes ? AllocateZeros(bytes) : nullptr;
  if (data == nullptr) {
    return ResourceExhausted(
        "cannot allocate ",
        bytes,
        " bytes; the machine has ",
        available_bytes,
        " bytes available on this machine and in its control group; use a smaller cache or model, "
        "or free memory"
    );
  }
  return std::make_unique<HostBuffer>(data, bytes);
}

void ReferenceOps::Upload(const void* host, void* device, int64_t bytes) {
  if (bytes > 0) {
    std::memmove(device, host, static_cast<size_t>(bytes));
  }
}

void ReferenceOps::Download(const void* device, void* host, int64_t bytes) {
  if (bytes > 0) {
    std::memmove(host, device, static_cast<size_t>(bytes));
  }
}

void ReferenceOps::Copy(const void* from, void* to, int64_t bytes) {
  if (bytes > 0) {
    std::memcpy(to, from, static_cast<size_t>(bytes));
  }
}

Weight ReferenceOps::AddWeight(const WeightSource& source) {
  Weight weight = CheckedWeight(source);
  weight.index = static_cast<int32_t>(weights_.size());
  weights_.push_back(source);
  return weight;
}

const WeightSource& ReferenceOps::SourceOf(const Weight& weight) const {
  CHECK(weight.index >= 0 && static_cast<size_t>(weight.index) < weights_.size())
      << "weight " << weight.index << " of " << weights_.size();
  return weights_[static_cast<size_t>(weight.index)];
}

const float* ReferenceOps::WidenedFeature(const Weight& weight, int64_t expert, int64_t feature) {
  const WeightSource& source = SourceOf(weight);
  StridedRange range = {.count = weight.in_features};
  const int64_t matrix_begin = expert * weight.in_features * weight.out_features;
  if (source.layout == WeightLayout::kOutIn) {
    range.begin = matrix_begin + feature * weight.in_features;
  } else {
    range.begin = matrix_begin + feature;
    range.stride = weight.out_features;
  }
  feature_scratch_.resize(static_cast<size_t>(weight.in_features));
  Widen(source.data, range, feature_scratch_.data());
  return feature_scratch_.data();
}

std::vector<float> ReferenceOps::WidenedVector(const Weight& weight, int64_t row, int64_t dim)
    const {
  std::vector<float> values(static_cast<size_t>(dim), 0.0F);
  if (weight.exists()) {
    Widen(SourceOf(weight).data, {.begin = row * dim, .count = dim}, values.data());
  }
  return values;
}

}  // namespace switchyard
